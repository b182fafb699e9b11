// A scene is what a link holds: limiters, each as the command that calls it, and traffic. play decides the whole scene at
// once; what is then shown at a time is a part of it. In a command, $client is who calls and $n for the number of the
// call.
import { run } from './program.js';
import { count, span } from './dom.js';
import { steps, most } from './traffic.js';

const kinds = {
  THROTTLE: { words: 5, spec: ([, , burst, units, period]) => ({ limit: Number(burst) + 1, count: Number(units), period }) },
  WINDOW: { words: 4, spec: ([, , limit, period]) => ({ limit: Number(limit), period }) },
  QUOTA: { words: 4, spec: ([, , limit, period]) => ({ limit: Number(limit), period }) },
  LEASE: { words: 5, spec: ([, , limit, period]) => ({ limit: Number(limit), period }) },
  POLICY: { words: 2, spec: () => ({}) },
  ALL: { words: 2, spec: () => ({}) },
};
const units = { ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000 };

// read finds out what the page must know of a command to draw it. The program says what is wrong with it.
export function read(command) {
  const words = command.trim().split(/\s+/);
  const kind = words[0].toUpperCase().replace(/^(GO|CL)\./, '');
  const ms = words.some((word) => word.toUpperCase() === 'MS') ? 1 : 1000;
  const found = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  const spec = { kind, words, ms, at: found?.words, ...found?.spec(words) };
  if (spec.period) {
    const [, number, unit] = /^\+?(\d+)(ms|s|m|h|d)?$/.exec(spec.period) ?? [];
    spec.period = Number(number) * (units[unit] ?? ms);
  }
  for (const name of ['limit', 'count', 'period']) if (!(spec[name] >= 1)) delete spec[name];
  return spec;
}

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
  return { end, cut: all.length >= most, lanes: specs.map((spec, i) => lane(spec, scene.limiters[i], calls, end, scene.policies)) };
}

const clients = ['alice', 'bob'];

// said is the command of one call. A step may have a quantity and an option of its own.
function said({ words, at }, step, n) {
  const own = [...words];
  if (step.quantity !== undefined && at) {
    const given = /^[+-]?\d+$/.test(own[at] ?? '');
    own.splice(at, given ? 1 : 0, step.quantity, ...(step.option ? [step.option] : []));
  }
  return own.join(' ').replaceAll('$client', clients[step.client]).replaceAll('$n', n);
}

function lane(spec, command, steps, end, policies) {
  const before = policies ? [[0, `CONFIG SET gothrottle.policies "${policies.replaceAll(/["\\]/g, '\\$&')}"`]] : [];
  const calls = settled(spec, steps, before);
  const lines = [...before];
  const asked = lines.map(() => null);
  const keys = command.includes('$client') ? [0, 1] : [0];
  const look = (at, call) => keys.forEach((client) => {
    const line = peek(spec, client);
    if (line) { lines.push([at, line]); asked.push({ at, client, call }); }
  });
  // What is left is looked at before and after each call, and in between often enough for a smooth curve.
  let next = 0;
  const step = end / 300;
  const grid = (until) => { for (; next < until; next += step) look(next); };
  calls.forEach((call, i) => {
    grid(call.at);
    if (call.at !== calls[i - 1]?.at) look(call.at);
    lines.push([call.at, call.line]);
    asked.push({ call });
    look(call.at, call);
  });
  grid(end + step / 2);
  const replies = run(lines);
  const drawn = { spec, command, calls, before, curves: [], windows: [], lockouts: [], error: replies.slice(0, before.length)[0]?.error };
  asked.forEach((a, i) => {
    if (a && !('at' in a)) take(drawn, a.call, replies[i]);
    else if (a) see(drawn, a, replies[i]);
  });
  return summed(drawn);
}

// settled leaves out the settlements of estimates that were denied.
function settled(spec, steps, before) {
  const calls = [];
  for (const step of steps) {
    if (step.settles) {
      const replies = run([...before, ...calls.map((call) => [call.at, call.line])]);
      const estimate = calls.findLastIndex((call) => call.id === step.settles);
      if (replies[before.length + estimate]?.[0] !== 0) continue;
    }
    calls.push({ ...step, line: said(spec, step, calls.length + 1) });
  }
  return calls;
}

// peek is the call that shows what is left, even below zero, and changes nothing. A greater limit leaves what is in use as
// it is, so it shows debt.
const room = 1000000;
function peek(spec, client) {
  const words = said(spec, { client }, 0).split(' ');
  const key = words[1];
  switch (spec.kind) {
    case 'THROTTLE': case 'QUOTA': return `GO.INFO ${key}`;
    case 'WINDOW': return spec.limit && `GO.WINDOW_RO ${key} ${spec.limit + room} ${words[3]} 0${spec.ms === 1 ? ' MS' : ''}`;
    case 'LEASE': return spec.limit && `GO.LEASE_RO ${key} ${spec.limit + room} ${words[3]} -${spec.ms === 1 ? ' MS' : ''}`;
    case 'POLICY': return `GO.POLICY_RO ${key} 0`;
    case 'ALL': return words.join(' ').replace(/^GO\.ALL/i, 'GO.ALL_RO').replaceAll(/(THROTTLE \S+ \S+ \S+|WINDOW \S+ \S+|QUOTA \S+ \S+)( [+-]?\d+(?=$| ))?/gi, '$1 0');
  }
}

const pairs = (flat) => Object.fromEntries(flat.flatMap((name, i) => (i % 2 ? [] : [[name, flat[i + 1]]])));

// see takes what a peek showed.
function see(drawn, { at, client, call }, reply) {
  const { spec } = drawn;
  if (reply?.error) { if (!call) return; drawn.error ??= reply.error; return; }
  let left;
  switch (spec.kind) {
    case 'THROTTLE': {
      const cell = reply && pairs(pairs(reply).cells[0]);
      left = [[spec.limit - (cell?.in_use ?? 0), spec.limit]];
      if (cell?.locked_for_ms > 0) {
        left[0][0] = Math.min(left[0][0], 0);
        const last = drawn.lockouts.at(-1);
        if (!last || at >= last.to) drawn.lockouts.push({ from: at, to: at + cell.locked_for_ms });
        if (call) call.locked = cell.locked_for_ms;
      }
      break;
    }
    case 'QUOTA': {
      const info = reply && pairs(reply);
      left = [[spec.limit - (info?.ends_in_ms > 0 ? info.used : 0), spec.limit]];
      const to = at + (info?.ends_in_ms ?? 0);
      if (to > at && !(Math.abs(drawn.windows.at(-1)?.to - to) < 2)) drawn.windows.push({ from: to - spec.period, to });
      break;
    }
    case 'WINDOW': left = [[reply[2] - room, spec.limit]]; break;
    case 'LEASE': left = [[reply[2] - room + (reply[0] ? 0 : 1), spec.limit]]; break;
    default: left = (reply?.slice(6) ?? []).map((inner) => [inner[2], inner[1]]);
  }
  if (left.length > 1 && client) return; // one client's curves are enough
  left.forEach(([units, limit], i) => {
    const curve = drawn.curves[i + client] ??= [];
    curve.push([at, units, limit]);
  });
  if (call && call.client % (drawn.command.includes('$client') ? 2 : 1) === client) call.left = left[0]?.[0];
}

// take takes the reply of a call.
function take(drawn, call, reply) {
  if (reply?.error || !Array.isArray(reply)) {
    drawn.error ??= reply?.error ?? 'this command calls no limiter';
    call.failed = true;
    return;
  }
  const { spec } = drawn;
  const word = call.line.split(' ')[spec.at] ?? '';
  call.reply = reply;
  call.denied = reply[0] === 1;
  call.units = /^[+-]?\d+$/.test(word) && spec.kind !== 'LEASE' ? Number(word) : 1;
  call.taken = call.denied ? 0 : /\bUPTO\b/i.test(call.line) ? reply[5] : call.units;
  call.later = /\bRESERVE\b/i.test(call.line); // it acts at its slot, not now
  if (call.later && reply[5] > 0) call.slot = call.at + reply[5] * spec.ms;
}

// summed adds to each call what was admitted and denied up to it, and the most that was admitted within one period.
function summed(drawn) {
  const { spec } = drawn;
  drawn.calls = drawn.calls.filter((call) => !call.failed);
  const keys = new Map(); // of each key the calls that took units within one period, and their sum
  let admitted = 0, denied = 0, peak = { units: 0 };
  for (const call of drawn.calls) {
    if (call.denied) denied++;
    else admitted++;
    const key = call.line.split(' ')[1];
    const recent = keys.get(key) ?? { calls: [], sum: 0 };
    keys.set(key, recent);
    if (call.taken) recent.calls.push(call);
    recent.sum += call.taken;
    while (recent.calls.length && Math.round((call.at - recent.calls[0].at) * 1000) >= spec.period * 1000) recent.sum -= recent.calls.shift().taken;
    if (spec.period && !call.later && recent.sum > peak.units) peak = { units: recent.sum, from: recent.calls[0].at, to: call.at };
    call.so = { admitted, denied, peak };
  }
  return drawn;
}

const names = ['limited', 'limit', 'remaining', 'retry_after', 'reset_after'];
const sixth = (call) => (/\bUPTO\b/i.test(call.line) ? 'granted' : /\bRESERVE\b/i.test(call.line) ? 'wait' : /^GO\.(ALL|POLICY)/i.test(call.line) ? 'index' : 'renewed');

// replyOf writes a reply with the names of its integers.
export const replyOf = (call) => call.reply.map((n, i) => (Array.isArray(n) ? `[${n.join(' ')}]` : `${names[i] ?? sixth(call)} ${n}`)).join(', ');

const waits = { THROTTLE: 'drain', WINDOW: 'leave the window', QUOTA: 'the next window begins', LEASE: 'a slot lapses' };

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
  const wait = span(retry * spec.ms);
  if (call.locked) return `denied: locked out, for ${span(call.locked)} more`;
  const missing = /\bUPTO\b/i.test(call.line) ? 1 : Math.max(call.units - (limit - used), 1);
  if (spec.kind === 'THROTTLE' || spec.kind === 'WINDOW') return `denied: ${inUse}, ${unit(missing)} ${missing === 1 ? waits[spec.kind].replace(/^\w+/, '$&s') : waits[spec.kind]} in ${wait}`;
  return `denied: ${inUse}, ${waits[spec.kind] ?? 'the call fits'} in ${wait}`;
}
