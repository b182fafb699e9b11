// The view Try: limiters of one's own choice, and traffic for them.
import { h, linkButton, possible, strangeLink } from './dom.js';
import { Player } from './player.js';
import { editor, fresh } from './editor.js';
import { trafficForm, usual } from './traffic.js';
import { readTry, writeTry, setLink } from './link.js';

export function tryView(about) {
  const { lanes, traffic, strange } = readTry(location.hash, about.policies) ?? { lanes: [fresh('throttle')], traffic: { ...usual } };
  const start = h('button', { type: 'button', class: 'primary', onclick: () => toggle() }, 'Start traffic');
  const player = new Player({ size: 'full', onrunning: (running) => {
    start.textContent = running ? 'Stop traffic' : 'Start traffic';
    start.classList.toggle('stop', running);
  } });
  const link = () => setLink(writeTry({ lanes, traffic }));
  const toggle = () => (player.running || possible()) && player.session.send(player.running ? 'stop' : 'start', player.running ? undefined : traffic);
  let timer;
  const later = (action) => {
    link();
    clearTimeout(timer);
    timer = setTimeout(action, 300);
  };
  const change = () => later(() => player.change(lanes, player.running ? traffic : undefined));
  const changeTraffic = () => later(() => player.running && player.session.send('start', traffic));

  // show draws the cards anew, after a limiter came or went.
  const show = (opened = 0) => {
    const names = lanes.map((_, i) => `Limiter ${i + 1}`);
    const forms = lanes.map((spec) => editor(spec, about.policies, change));
    const controls = forms.map((form, i) => h('details', { class: 'change', open: (opened ? i === opened : lanes.length === 1) || form.querySelector(':invalid') !== null },
      h('summary', {}, 'Change this limiter'), form,
      lanes.length > 1 && h('button', { type: 'button', class: 'quiet small', onclick: () => { lanes.splice(i, 1); link(); show(); add.focus(); } }, `Remove limiter ${i + 1}`)));
    add.disabled = lanes.length >= 4;
    return player.setLanes(lanes, names, controls, player.running ? traffic : undefined);
  };
  const add = h('button', { type: 'button', onclick: () => {
    const used = new Set(lanes.map((spec) => spec.kind));
    lanes.push(fresh(['throttle', 'window', 'quota', 'all'].find((kind) => !used.has(kind)) ?? 'throttle'));
    link();
    show(lanes.length - 1);
    player.element.lastElementChild.querySelector('[data-name=kind]').focus(); // Add may be disabled now
  } }, 'Add a limiter');

  const panel = h('section', { class: 'card panel', 'aria-labelledby': 'traffic' }, h('h2', { id: 'traffic' }, 'Traffic'),
    h('div', { class: 'buttons' }, start,
      h('button', { type: 'button', onclick: () => possible() && player.session.send('call') }, 'Send one call'),
      h('button', { type: 'button', class: 'quiet', onclick: () => player.session.send('reset') }, 'Reset')),
    strangeLink(strange), player.error, player.note, trafficForm(traffic, changeTraffic), ...linkButton(link));
  show();
  return {
    element: h('div', { class: 'view' },
      h('div', { class: 'lead' }, h('h1', {}, 'See a rate limiter at work'),
        h('p', {}, 'Every dot is one call. A real server with gothrottle decides it: ', h('span', { class: 'key-admitted' }, '● admitted'), ' above the line, ', h('span', { class: 'key-denied' }, '✕ denied'), ' below it. The curve shows how many units are left.')),
      h('div', { class: 'columns' }, panel, h('section', { 'aria-label': 'Limiters' }, player.element, h('div', { class: 'after' }, add)))),
    close: () => player.close(),
  };
}
