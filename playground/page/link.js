// Settings as the fragment of the address, so that a link restores them.
import { known } from './editor.js';
import { patterns, usual } from './traffic.js';

const numbers = new Set(['limit', 'count', 'period', 'quantity', 'time']);

const writeSpec = (spec) => [spec.kind, ...Object.entries(spec).filter(([name, value]) => name !== 'kind' && name !== 'clauses' && value !== undefined && value !== false && value !== '')
  .map(([name, value]) => `${name}:${value}`)].join(',') + (spec.clauses ?? []).map((clause) => `;${writeSpec(clause)}`).join('');

function readSpec(text) {
  const [own, ...clauses] = text.split(';');
  const [kind, ...pairs] = own.split(',');
  const spec = { kind };
  for (const pair of pairs) {
    const [name, value] = pair.split(':');
    if (name === 'clauses') continue;
    spec[name] = numbers.has(name) ? Number(value) : value === 'true' ? true : value;
  }
  if (clauses.length) spec.clauses = clauses.map(readSpec);
  return spec;
}

// params returns the words after the question mark of a fragment, if it is this view's.
export function params(hash, view) {
  return hash.startsWith(`#${view}?`) ? new URLSearchParams(hash.slice(view.length + 2)) : null;
}

export function writeTry({ lanes, traffic }) {
  const words = new URLSearchParams(clean(traffic));
  for (const lane of lanes) words.append('lane', writeSpec(lane));
  return `#try?${readable(words)}`;
}

// readTry returns what a link says, or null. A link can hold anything: if the page shows something else instead, it is strange.
export function readTry(hash, policies) {
  const words = params(hash, 'try');
  if (!words?.has('lane')) return null;
  const told = words.getAll('lane').map(readSpec);
  const lanes = told.slice(0, 4).map((spec) => known(spec, policies));
  const shape = (spec) => [spec.kind, spec.mode, spec.policy, spec.clauses?.map(shape)];
  const { traffic, strange } = readTraffic(words, Object.keys(patterns));
  return { lanes, traffic, strange: strange || JSON.stringify(told.map(shape)) !== JSON.stringify(lanes.map(shape)) };
}

// readTraffic returns the traffic of a link, within the bounds of the form.
export function readTraffic(words, names) {
  const traffic = { ...usual, pattern: words.get('pattern') ?? names[0], own: words.get('own') === 'true' };
  let strange = !names.includes(traffic.pattern);
  if (strange) traffic.pattern = names[0];
  for (const [name, low, high] of [['rate', 0.5, 50], ['size', 1, 100], ['every', 200, 600000]]) {
    const told = readNumber(words, name) ?? traffic[name];
    traffic[name] = Math.min(Math.max(name === 'rate' ? told : Math.round(told), low), high);
    strange ||= traffic[name] !== told;
  }
  return { traffic, strange };
}

// readNumber returns undefined if there is no such number.
export function readNumber(words, name) {
  const number = Number(words.get(name) ?? NaN);
  return Number.isFinite(number) ? number : undefined;
}

export const clean = (object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined && value !== false));

// readable leaves what a fragment may hold as it is.
export const readable = (words) => words.toString().replaceAll('%3A', ':').replaceAll('%2C', ',').replaceAll('%3B', ';');

// setLink changes the address without a new entry in the history. The link to the view leads back to it.
export function setLink(hash) {
  history.replaceState(null, '', hash);
  document.querySelector('nav [aria-current]')?.setAttribute('href', hash);
}
