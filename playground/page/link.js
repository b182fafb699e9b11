// Settings as the fragment of the address, so that a link restores them.

const numbers = new Set(['limit', 'count', 'period', 'quantity', 'time']);

const writeSpec = (spec) => [spec.kind, ...Object.entries(spec).filter(([name, value]) => name !== 'kind' && name !== 'clauses' && value !== undefined && value !== false && value !== '')
  .map(([name, value]) => `${name}:${value}`)].join(',') + (spec.clauses ?? []).map((clause) => `;${writeSpec(clause)}`).join('');

function readSpec(text) {
  const [own, ...clauses] = text.split(';');
  const [kind, ...pairs] = own.split(',');
  const spec = { kind };
  for (const pair of pairs) {
    const [name, value] = pair.split(':');
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

export function readTry(hash) {
  const words = params(hash, 'try');
  if (!words?.has('lane')) return null;
  return { lanes: words.getAll('lane').slice(0, 4).map(readSpec), traffic: readTraffic(words) };
}

export function readTraffic(words) {
  const traffic = { pattern: words.get('pattern') ?? 'steady', rate: 4, size: 15, every: 4000, own: words.get('own') === 'true' };
  for (const name of ['rate', 'size', 'every']) if (Number(words.get(name)) > 0) traffic[name] = Number(words.get(name));
  return traffic;
}

export const clean = (object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined && value !== false));

// readable leaves what a fragment may hold as it is.
export const readable = (words) => words.toString().replaceAll('%3A', ':').replaceAll('%2C', ',').replaceAll('%3B', ';');

// setLink changes the address without a new entry in the history.
export const setLink = (hash) => history.replaceState(null, '', hash);
