// Scenes as the fragment of the address, so that a link restores them.
import { read } from './traffic.js';

export function write(view, { limiters, traffic, own, length }) {
  const words = new URLSearchParams();
  limiters.forEach((command) => words.append('c', command));
  if (traffic) words.set('t', traffic);
  if (length) words.set('s', length / 1000);
  if (own?.length) words.set('own', own.join(' '));
  return `#${view}?${words.toString().replaceAll('%3A', ':').replaceAll('%24', '$').replaceAll('%2C', ',')}`;
}

export const words = (hash) => new URLSearchParams(hash.split('?').slice(1).join('?'));

// scene returns what a link says, or usual. A link can hold anything: if the page shows something else instead, it is
// strange.
export function scene(hash, usual) {
  const said = words(hash);
  const limiters = said.getAll('c').map((command) => command.slice(0, 4000));
  const pattern = said.get('t') ?? usual.traffic;
  const { name, numbers, ok } = read(pattern);
  const seconds = Number(said.get('s') ?? 0);
  const own = (said.get('own') ?? '').split(' ').filter(Boolean).map(Number);
  const length = seconds >= 1 && seconds <= 31536000 ? seconds * 1000 : undefined;
  const fine = own.filter((at) => at >= 0 && at <= (length ?? 31536000000)).slice(0, 200);
  return {
    limiters: limiters.length ? limiters.slice(0, 4) : [...usual.limiters],
    traffic: [name, ...numbers].join(' '),
    length, own: fine,
    strange: !ok || limiters.length > 4 || fine.length !== own.length || said.has('s') && !length || said.size > 0 && !limiters.length,
  };
}
