// A scene is what a link holds: limiters, each as the command that calls it, and traffic. play decides the whole scene at
// once; what is then shown at a time is a part of it. In a command, $client is the caller and $n the number of the call.
import { run, pairs } from './program.js';
import { count, span, units } from './dom.js';
import { steps, most, read as readTraffic } from './traffic.js';

// Of each kind the places of the period and of the quantity among the words.
const places = { THROTTLE: [4, 5], WINDOW: [3, 4], QUOTA: [3, 4], LEASE: [3] };

// read finds out what the page must know of a command to draw it. The program says what is wrong with it.
export function read(command) {
  const words = command.trim().split(/\s+/);
  const kind = words[0].toUpperCase().replace(/^(GO|CL)\./, '');
  const ms = words.some((word) => word.toUpperCase() === 'MS') ? 1 : 1000;
  const [place, at] = places[kind] ?? [];
  const spec = { kind, words, ms, at };
  if (!place) return spec;
  const [, number, unit] = /^\+?(\d+)(ms|s|m|h|d)?$/.exec(words[place]) ?? [];
  const limit = Number(words[2]) + (kind === 'THROTTLE' ? 1 : 0), period = number * (units[unit] ?? ms);
  return { ...spec, ...(limit >= 1 && { limit }), ...(period >= 1 && { period }), ...(kind === 'THROTTLE' && { rate: words[3] / period }) };
}

// first is the limiter that a funnel shows: the first clause of GO.ALL, else the command itself.
const first = ({ kind, words }) => read(kind === 'ALL' ? `GO.${words[2]} ${words[1]} ${words.slice(3).join(' ')}` : words.join(' '));

// length is how long the time line of a scene is, in ms.
export function length(scene) {
  if (scene.length) return scene.length;
  const periods = scene.limiters.map((command) => read(command).period ?? 5000);
  return Math.min(Math.max(3 * Math.max(...periods), 12000), 86400000 * 7);
}

export function play(scene) {
  const end = length(scene);
  const specs = scene.limiters.map(read);
  const aim = specs.find((spec) => spec.kind === 'QUOTA' && spec.period) ?? specs.find((spec) => spec.period) ?? { limit: 10, period: 5000 };
  const all = steps(scene.traffic, aim, end);
  const calls = [...all, ...(scene.own ?? []).map((at) => ({ at, client: 0, own: true }))].sort((a, b) => a.at - b.at);
  const lanes = specs.map((spec, i) => lane(spec, scene.limiters[i], calls, end));
  return { end, cut: all.length >= most, whole: lanes, lanes: scene.split ? lanes.flatMap(byClient) : lanes.map(summed) };
}

const clients = ['alice', 'bob'];

// byClient is a lane for each client of a limiter, with the curve of what they share.
const byClient = (drawn) => clients.map((name, client) => summed({ ...drawn, calls: drawn.calls.filter((call) => call.client === client), curves: drawn.curves.slice(0, 1) }));

// said is the command of one call. A step may have a quantity and an option of its own, or charge what a hold has cost.
function said({ kind, words, at }, step, n) {
  if (step.charge) return said({ kind, words }, { client: step.client }, step.settles).replace(/ 0 KEY (\S+) LEASE \S+ \S+ (\S+).*$/, ` ${step.charge} KEY $1 RELEASE $2 FORCE`);
  const own = [...words];
  if (step.quantity !== undefined && at) {
    const given = /^[+-]?\d+$/.test(own[at] ?? '');
    own.splice(at, given ? 1 : 0, step.quantity, ...(step.option ? [step.option] : []));
  }
  if (step.more && kind === 'ALL') own.push(step.more);
  return own.join(' ').replaceAll('$client', clients[step.client]).replaceAll('$n', n);
}

function lane(spec, command, steps, end) {
  const calls = settled(spec, steps);
  const drawn = { spec: { ...spec, first: first(spec) }, command, calls, more: calls.find((call) => call.more)?.at, curves: [], windows: [], lockouts: [] };
  const script = []; // time, call, and what takes the reply
  const keys = command.includes('$client') ? [0, 1] : [0];
  const look = (at, call) => keys.forEach((client) => {
    const line = peek(spec, client);
    if (line) script.push([at, line, (reply) => see(drawn, { at, client, call }, reply)]);
  });
  // What is left is looked at before and after each call, and in between often enough for a smooth curve.
  let next = 0;
  const grid = (until) => { for (; next < until; next += end / 300) look(next); };
  calls.forEach((call, i) => {
    grid(call.at);
    if (call.at !== calls[i - 1]?.at) look(call.at);
    script.push([call.at, call.line, (reply) => take(drawn, call, reply)]);
    look(call.at, call);
  });
  grid(end * 1.001);
  run(script).forEach((reply, i) => script[i][2](reply));
  return drawn;
}

// settled leaves out the settlements of estimates that were denied.
function settled(spec, steps) {
  const calls = [];
  for (const step of steps) {
    if (step.settles) {
      const replies = run(calls.map((call) => [call.at, call.line]));
      if (replies[calls.findIndex((call) => call.id === step.settles)]?.[0] !== 0) continue;
    }
    calls.push({ ...step, line: said(spec, step, step.id ?? calls.length + 1) });
    const held = step.settles && calls.find((call) => call.id === step.settles);
    if (held) held.settled = true;
  }
  return calls;
}

// peek is the call that shows what is left and changes nothing. With a greater limit it shows debt, too.
function peek({ kind, words, limit, period, ...spec }, client) {
  const own = said({ kind, words, ...spec }, { client }, 0);
  const key = own.split(' ')[1];
  switch (kind) {
    case 'THROTTLE': return `GO.INFO ${key}`;
    case 'ALL': return own.replace(/^GO\.ALL/i, 'GO.ALL_RO').replaceAll(/(THROTTLE \S+ \S+ \S+|WINDOW \S+ \S+|QUOTA \S+ \S+)( [+-]?\d+(?=$| ))?/gi, '$1 0').replaceAll(/(LEASE \S+ \S+) \S+ \d+/gi, '$1 - 1');
    default: return limit && period && `GO.${kind}_RO ${key} ${Math.min(limit + 1e6, 1e12)} ${period} ${kind === 'LEASE' ? '-' : 0} MS`;
  }
}

// see takes what a peek showed.
function see(drawn, { at, client, call }, reply) {
  const { kind, limit, period } = drawn.spec;
  if (reply?.error) { if (call) drawn.error ??= reply.error; return; }
  let left;
  if (kind === 'ALL') left = reply.slice(6).map((inner) => [inner[2], inner[1]]);
  else if (kind === 'THROTTLE') {
    const { in_use: used, locked_for_ms: locked } = reply ? pairs(pairs(reply).cells[0]) : { in_use: 0, locked_for_ms: 0 };
    left = [[locked ? Math.min(limit - used, 0) : limit - used, limit]];
    if (locked && !(at < drawn.lockouts.at(-1)?.to)) drawn.lockouts.push({ from: at, to: at + locked });
    if (call) call.locked = locked;
  } else {
    left = [[reply[2] - reply[1] + limit + (kind === 'LEASE' ? 1 : 0), limit]]; // the peek at a lease would take a slot
    const to = at + reply[4];
    if (kind === 'QUOTA' && to > at && !(Math.abs(drawn.windows.at(-1)?.to - to) < 2)) drawn.windows.push({ from: to - period, to });
  }
  if (left.length > 1 && client) return; // one client's curves are enough
  left.forEach(([units, most], i) => (drawn.curves[i + client] ??= []).push([at, units, most]));
  if (call && call.client % (drawn.command.includes('$client') ? 2 : 1) === client) call.left = left[0]?.[0];
}

// take takes the reply of a call.
function take(drawn, call, reply) {
  if (reply?.error || !Array.isArray(reply)) {
    drawn.error ??= reply?.error ?? 'this command calls no limiter';
    return;
  }
  const { spec } = drawn;
  const word = call.line.split(' ')[spec.at] ?? '';
  call.reply = reply;
  call.denied = reply[0] === 1;
  call.units = /^[+-]?\d+$/.test(word) ? Number(word) : 1;
  call.taken = call.denied ? 0 : /\bUPTO\b/i.test(call.line) ? reply[5] : call.units;
  const [, ttl, held] = /LEASE \S+ (\d+)s \S+ (\d+)/.exec(call.line) ?? [];
  if (held && !call.denied) call.until = call.at + ttl * 1000;
  call.wants = Number(call.charge ?? held ?? call.units); // what a funnel shows
  call.pour = Number(call.charge ?? held ?? call.taken);
  call.later = /\bRESERVE\b/i.test(call.line); // it acts at its slot, not now
  if (call.later && reply[5] > 0) call.slot = call.at + reply[5] * spec.ms;
}

// summed adds to each call what was admitted and denied up to it, and the most that was admitted within one period.
function summed(drawn) {
  const { spec } = drawn;
  drawn.calls = drawn.calls.filter((call) => call.reply);
  const keys = Object.create(null); // of each key the calls that took units within one period, and their sum
  let admitted = 0, denied = 0, peak = { units: 0 };
  drawn.none = { admitted, denied, peak };
  for (const call of drawn.calls) {
    if (call.denied) denied++;
    else admitted++;
    const recent = (keys[call.line.split(' ')[1]] ??= { calls: [], sum: 0 });
    if (call.taken) recent.calls.push(call);
    recent.sum += call.taken;
    while (recent.calls.length && Math.round((call.at - recent.calls[0].at) * 1000) >= spec.period * 1000) recent.sum -= recent.calls.shift().taken;
    if (spec.period && !call.later && recent.sum > peak.units) peak = { units: recent.sum, from: recent.calls[0].at, to: call.at };
    call.so = { admitted, denied, peak };
  }
  return drawn;
}

const names = ['limited', 'limit', 'remaining', 'retry_after', 'reset_after'];
const sixth = (call) => (/\bUPTO\b/i.test(call.line) ? 'granted' : /\bRESERVE\b/i.test(call.line) ? 'wait' : /^GO\.ALL/i.test(call.line) ? 'index' : 'renewed');

// replyOf writes a reply with the names of its integers.
export const replyOf = (call) => call.reply.map((n, i) => (Array.isArray(n) ? `[${n.join(' ')}]` : `${names[i] ?? sixth(call)} ${n}`)).join(', ');

// because says in one sentence why a call got its reply.
export function because({ spec }, call) {
  const [, limit, remaining, retry] = call.reply;
  const unit = (n) => count(n, 'unit');
  const used = limit - (spec.limit ? call.left ?? remaining : remaining);
  const inUse = spec.kind === 'LEASE' ? `${used} of ${limit} slots held` : `${used.toLocaleString('en')} of ${limit.toLocaleString('en')} in use`;
  if (!call.denied) {
    if (call.units < 0) return `gave back ${unit(-call.units)}: ${inUse} now`;
    if (call.slot) return `admitted, to act in ${span(call.slot - call.at)}: its slot is taken now`;
    if (used > limit) return `charged past the limit: ${unit(used - limit)} of debt`;
    return `admitted: ${call.taken < call.units ? `${call.taken} of ${unit(call.units)} granted, ` : ''}${inUse} now`;
  }
  if (retry < 0) return `denied: ${unit(call.units)} never fit into a limit of ${limit}`;
  if (call.locked) return `denied: locked out, for ${span(call.locked)} more`;
  const missing = /\bUPTO\b/i.test(call.line) ? 1 : Math.max(call.units - (limit - used), 1);
  const s = missing === 1 ? 's' : '';
  const what = { THROTTLE: `${unit(missing)} drain${s}`, WINDOW: `${unit(missing)} leave${s} the window`, QUOTA: 'the next window begins', LEASE: 'a slot lapses' }[spec.kind];
  return `denied: ${inUse}, ${what ?? 'the call fits'} in ${span(retry * spec.ms)}`;
}

// write returns the link to a scene.
export function write({ limiters, traffic, own, length }) {
  const words = new URLSearchParams(limiters.map((command) => ['c', command]));
  if (traffic) words.set('t', traffic);
  if (length) words.set('s', length / 1000);
  if (own?.length) words.set('own', own.join(' '));
  return `#try?${words.toString().replaceAll('%3A', ':').replaceAll('%24', '$').replaceAll('%2C', ',')}`;
}

export const words = (hash) => new URLSearchParams(hash.split('?').slice(1).join('?'));

// readLink returns the scene that a link says, or usual. A link can hold anything: strange says that the page shows something else.
export function readLink(hash, usual) {
  const said = words(hash);
  const limiters = said.getAll('c').map((command) => command.slice(0, 4000));
  const { name, numbers, ok } = readTraffic(said.get('t') ?? usual.traffic);
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
