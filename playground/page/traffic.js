// The form of the traffic.
import { h, field, number, checkbox, setText } from './dom.js';

export const patterns = {
  steady: ['Steady', 'one call after another, at one rate'],
  bursts: ['Bursts', 'many calls at once, then a pause'],
  clients: ['Two clients', 'one calls steadily (●), the other in bursts (■)'],
  boundary: ['Boundary attack', 'a whole limit just before a fixed window ends, and another just after'],
};

export const usual = { pattern: 'steady', rate: 4, size: 15, every: 4000, own: false };

// trafficForm returns the fieldset of the pattern and the fields that it needs.
export function trafficForm(traffic, onchange, names = Object.keys(patterns)) {
  const fields = h('div', { class: 'editor' });
  const draw = () => fields.replaceChildren(...fieldsOf(traffic, onchange));
  const radios = names.map((name) => {
    const radio = h('input', { type: 'radio', name: 'pattern', value: name, checked: traffic.pattern === name, onchange: () => {
      traffic.pattern = name;
      draw();
      onchange();
    } });
    return h('label', { class: 'choice' }, radio, h('span', {}, h('b', {}, patterns[name][0]), h('small', {}, patterns[name][1])));
  });
  draw();
  return h('div', {}, h('fieldset', { class: 'choices' }, h('legend', {}, 'Pattern'), ...radios), fields);
}

function fieldsOf(traffic, onchange) {
  const set = (name) => (value) => { traffic[name] = value; onchange(); };
  const list = [];
  if (traffic.pattern === 'steady' || traffic.pattern === 'clients') list.push(slider(traffic, onchange));
  if (traffic.pattern === 'bursts' || traffic.pattern === 'clients') {
    list.push(field('Calls in a burst', number(traffic.size, { min: 1, max: 100 }, set('size'))),
      field('Seconds between bursts', number(traffic.every / 1000, { min: 0.2, max: 600, step: 'any' }, (value) => set('every')(Math.round(value * 1000)))));
  }
  if (traffic.pattern === 'clients') list.push(checkbox('a key for each client', traffic.own, set('own')));
  return list;
}

// slider sets the rate, in steps that feel even from 0.5 to 50 per second.
function slider(traffic, onchange) {
  const shown = h('output', {});
  const tell = () => {
    setText(shown, `${traffic.rate} per second`);
    range.setAttribute('aria-valuetext', shown.textContent);
  };
  const range = h('input', { type: 'range', min: 0, max: 40, step: 1, value: Math.round(20 * Math.log10(traffic.rate * 2)), oninput: () => {
    const rate = 10 ** (range.valueAsNumber / 20) / 2;
    traffic.rate = rate < 2 ? Math.round(rate * 10) / 10 : Math.round(rate * (rate < 10 ? 2 : 1)) / (rate < 10 ? 2 : 1);
    tell();
    onchange();
  } });
  tell();
  const element = field('Rate of calls', range);
  element.classList.add('wide');
  element.append(shown);
  return element;
}
