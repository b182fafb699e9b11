// Small helpers for elements and text.

export const still = matchMedia('(prefers-reduced-motion: reduce)');

// h makes an element. Attributes that begin with "on" are listeners; false and undefined leave an attribute out.
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

// svg makes an element of a drawing.
export const svg = (tag, attributes, ...children) => fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

function fill(element, attributes = {}, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

// setText changes a text only if it differs, so screen readers and selections are left alone.
export function setText(element, text) {
  if (element.textContent !== String(text)) element.textContent = text;
}

export const units = { us: 0.001, ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000 }; // in ms

// span writes milliseconds as a person would.
export function span(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120000) return `${+(ms / 1000).toFixed(ms < 10000 ? 1 : 0)} s`;
  if (ms < 7200000) return `${+(ms / 60000).toFixed(1)} min`;
  return ms < 172800000 ? `${+(ms / 3600000).toFixed(1)} h` : `${+(ms / 86400000).toFixed(1)} days`;
}

// counted is how many calls were admitted and denied.
export const counted = (...sums) => ['admitted', 'denied'].map((word, i) => h('span', { class: i ? 'bad' : 'good' }, h('b', {}, sums[i]), ` ${word}`));

export const count = (n, word) => `${n.toLocaleString('en')} ${word}${n === 1 ? '' : 's'}`;

let ids = 0;
export const id = (name) => `${name}-${++ids}`;

// field is a label with its control.
export function field(label, control) {
  control.id ||= id('field');
  return h('div', { class: 'field' }, h('label', { for: control.id }, label), control);
}

export function select(options, value, onchange) {
  return h('select', { onchange: (event) => onchange(event.target.value) },
    ...options.map(([name, text]) => h('option', { value: name, selected: name === String(value) }, text)));
}

// number is a field for a number, with its bounds beside it while it is out of them. Only valid numbers reach onchange.
export function number(label, value, min, max, onchange) {
  const wrong = h('small', { id: id('wrong'), class: 'wrong', role: 'status' });
  const input = h('input', { type: 'number', inputmode: 'decimal', value, min, max, step: 'any', required: true, 'aria-describedby': wrong.id, oninput: () => {
    const ok = input.checkValidity();
    setText(wrong, ok ? '' : `${min} to ${max}`);
    if (ok) onchange(input.valueAsNumber);
  } });
  const element = field(label, input);
  element.append(wrong);
  return element;
}

export const button = (text, onclick, attributes = {}) => h('button', { type: 'button', onclick, ...attributes }, text);

// copyButton copies what text() returns. Where a browser refuses, as at addresses without https, one copies by hand.
export function copyButton(name, text, attributes = { class: 'quiet' }) {
  const element = button(name, async () => {
    const copied = await navigator.clipboard?.writeText(text()).then(() => true, () => false);
    if (!copied) prompt('Copy this:', text());
    setText(element, copied ? 'Copied' : name);
    setTimeout(() => setText(element, name), 2000);
  }, { 'aria-live': 'polite', ...attributes });
  return element;
}

// setLink changes the address without a new entry in the history. The link to the view leads back to it.
export function setLink(hash) {
  history.replaceState(null, '', hash);
  document.querySelector('nav [aria-current]')?.setAttribute('href', hash);
}
