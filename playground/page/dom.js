// Small helpers for elements and text.

// h makes an element. Attributes that begin with "on" are listeners; false and undefined leave an attribute out.
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// svg makes an element of a drawing.
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

// setText changes a text only if it differs, so screen readers and selections are left alone.
export function setText(element, text) {
  if (element.textContent !== String(text)) element.textContent = text;
}

// span tells milliseconds as a person would.
export function span(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${+(ms / 1000).toFixed(ms < 10000 ? 1 : 0)} s`;
  return `${+(ms / 60000).toFixed(1)} min`;
}

let ids = 0;

// field is a label with its control, and a hint if there is one. An invalid number is told beside the control.
export function field(label, control, hint) {
  control.id ||= `field-${++ids}`;
  const hinted = hint && h('small', { id: `${control.id}-hint` }, hint);
  const wrong = control.type === 'number' && h('small', { id: `${control.id}-wrong`, class: 'wrong', role: 'status' });
  const described = [hinted, wrong].filter(Boolean).map((e) => e.id).join(' ');
  if (described) control.setAttribute('aria-describedby', described);
  if (wrong) {
    const check = () => {
      const ok = control.checkValidity();
      setText(wrong, ok ? '' : `${control.step === 'any' ? '' : 'whole, '}${control.min} to ${control.max}`);
      control.setAttribute('aria-invalid', !ok);
    };
    control.addEventListener('input', check);
    check();
  }
  return h('div', { class: 'field' }, h('label', { for: control.id }, label), wrong, control, hinted);
}

// possible reports whether all numbers of the view are valid. The first invalid number gets the focus.
export function possible() {
  const wrong = document.querySelector('main input:invalid');
  if (!wrong) return true;
  const fold = wrong.closest('details');
  if (fold) fold.open = true;
  wrong.focus();
  return false;
}

// strangeLink tells that the page does not show what the link said.
export function strangeLink(strange) {
  return strange && h('p', { class: 'warn', role: 'status' }, 'The link holds a setting that is not possible here. The page shows the nearest one.');
}

export function select(options, value, onchange) {
  const element = h('select', { onchange: () => onchange(element.value) },
    ...options.map(([name, text]) => h('option', { value: name, selected: name === value }, text)));
  return element;
}

// number is a box for a number. Only valid numbers reach onchange.
export function number(value, { min, max, step = 1 }, onchange) {
  const element = h('input', { type: 'number', inputmode: step === 'any' ? 'decimal' : 'numeric', value: Number.isFinite(value) ? value : undefined, min, max, step, required: true,
    oninput: () => element.checkValidity() && onchange(element.valueAsNumber) });
  return element;
}

export function checkbox(label, checked, onchange) {
  const box = h('input', { type: 'checkbox', checked, onchange: () => onchange(box.checked) });
  return h('label', { class: 'check' }, box, ' ', label);
}

// copyable is a line of code with a button that copies it.
export function copyable(name) {
  const code = h('code');
  const said = h('span', { role: 'status', class: 'hidden' });
  const button = h('button', { type: 'button', class: 'quiet small', 'aria-label': `Copy the line: ${name}`, onclick: async () => {
    await copy(code.textContent);
    said.textContent = 'Copied';
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; said.textContent = ''; }, 2000);
  } }, 'Copy');
  const element = h('div', { class: 'line' }, h('div', { class: 'line-head' }, h('span', {}, name), button, said), h('pre', {}, code));
  return { element, set: (text) => setText(code, text) };
}

// linkButton returns a button that copies the page's address, and the word that tells so. link writes the setting into
// the address.
export function linkButton(link) {
  const copied = h('span', { role: 'status' });
  const button = h('button', { type: 'button', class: 'quiet', onclick: async () => {
    link();
    await copy(location.href);
    copied.textContent = 'Copied';
    setTimeout(() => { copied.textContent = ''; }, 2000);
  } }, 'Copy a link to this');
  return [button, copied];
}

// copy works without the clipboard's permission too: on other addresses than loopback browsers refuse it.
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h('textarea', { class: 'hidden' });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
}
