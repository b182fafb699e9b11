// The view Try: limiters and traffic of the reader's own choice.
import { h, field, select, number, button, copyButton, setLink } from './dom.js';
import { Stage } from './stage.js';
import { read as readTraffic, patterns } from './traffic.js';
import { read, length, readLink, write } from './scene.js';

const usual = { limiters: ['GO.THROTTLE api 9 2 1000 MS', 'GO.WINDOW api 10 5000 MS'], traffic: 'clients 2 8 5' };
const more = ['GO.QUOTA api 10 5000 MS', 'GO.ALL api THROTTLE 4 5 1 THROTTLE 19 20 10', 'GO.LEASE jobs 5 3000 job-$n MS'];
const texts = { 'GO.THROTTLE': 'a burst, then a rate', 'GO.WINDOW': 'at most this many in any span', 'GO.QUOTA': 'at most this many in each window', 'GO.ALL': 'several limits in one call', 'GO.LEASE': 'slots, each held for a while' };

export function tryView() {
  const scene = readLink(location.hash, usual);
  const add = button('Add a limiter', () => {
    const used = scene.limiters.map((command) => read(command).kind);
    scene.limiters.push(more.find((command) => !used.includes(read(command).kind)) ?? more[0]);
    stage.build();
    stage.cards.lastElementChild.querySelector('input').focus();
  });
  const stage = new Stage(scene, { editable: true, onchange: () => { setLink(write(scene)); add.disabled = scene.limiters.length >= 4; } });
  const panel = h('section', { class: 'card panel', 'aria-labelledby': 'traffic' }, h('h2', { id: 'traffic' }, 'Traffic'), trafficForm(scene, () => { stage.again(); stage.now = 0; stage.go(); }),
    number('Seconds shown', length(scene) / 1000, 1, 31536000, (value) => { scene.length = value * 1000; stage.again(); }),
    h('h2', {}, 'Limiters'), h('ul', { class: 'quiet-text kinds' }, ...Object.entries(texts).map(([name, text]) => h('li', {}, h('code', {}, name), ` ${text}`))),
    h('p', { class: 'quiet-text' }, 'Each limiter is a command: change its words. ', h('code', {}, '$client'), ' in a key is the caller, ', h('code', {}, '$n'), ' the number of the call.'),
    add, copyButton('Copy a link to this', () => location.href));
  stage.go();
  return {
    element: h('div', { class: 'view' },
      h('div', { class: 'lead' }, h('h1', {}, 'Try a rate limiter'),
        h('p', {}, 'Every dot is one call: ', h('b', { class: 'good' }, '● admitted'), ' above the line, ', h('b', { class: 'bad' }, '✕ denied'), ' below it. The curve shows what is left. Click a chart to make a call, point at a dot to see why.'),
        scene.strange && h('p', { class: 'warn', role: 'status' }, 'The link holds a setting that is not possible here. The page shows the nearest one.')),
      h('div', { class: 'columns' }, stage.element, panel)),
    close: () => stage.stop(),
  };
}

// trafficForm changes the traffic of a scene.
function trafficForm(scene, onchange) {
  const form = h('div', { class: 'editor' });
  const draw = () => {
    const { name, numbers } = readTraffic(scene.traffic);
    const put = () => { scene.traffic = [name, ...numbers].join(' '); onchange(); };
    form.replaceChildren(field('Pattern', select(Object.entries(patterns).map(([id, [text]]) => [id, text]), name, (value) => {
      scene.traffic = value;
      draw();
      form.querySelector('select').focus();
      onchange();
    })), ...patterns[name][1].map(([label, low, high], i) => number(label, numbers[i], low, high, (value) => { numbers[i] = value; put(); })));
  };
  draw();
  return form;
}
