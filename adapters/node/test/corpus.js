// Makes the calls of the transcripts by the client, where it has a verb for them: TestCorpus says how.
import { createInterface } from 'node:readline';
import { connect } from 'gothrottle';

const limits = await connect(`redis://${process.env.ADDR}`, { timeout: 20_000, log() {} });
const KINDS = { THROTTLE: 'rate', WINDOW: 'window', QUOTA: 'quota', LEASE: 'slots' };
const number = (word) => (/^-?(0|[1-9]\d{0,14})$/.test(word) ? Number(word) : undefined);
const time = (word, ms) => (/^[1-9]\d*(ms|s|m|h|d)$/.test(word) ? word : number(word) > 0 ? number(word) * (ms ? 1 : 1000) : undefined);

// Returns the limiter and the rest of the words of a clause; undefined if the client lacks it.
function read([name, ...words], ms) {
  const kind = KINDS[name];
  const limit = {};
  if (kind === 'rate') limit.burst = number(words.shift()) + 1;
  limit.limit = number(words.shift());
  const period = words.shift();
  if (kind === 'slots') limit.ttl = time(period, ms);
  else if (period === '1mo') Object.assign(limit, { perMonth: limit.limit, limit: undefined });
  else limit.per = time(period, ms);
  const n = kind === 'slots' ? words.shift() : /^[-\d]/.test(words[0] ?? '') ? number(words.shift()) : 1;
  for (let word; (word = words.shift());) {
    if (word === 'LOCKOUT' && kind === 'rate' && !limit.lockout) limit.lockout = time(words.shift(), ms);
    else if (word === 'EXACT' && kind === 'window' && !limit.exact) limit.exact = true;
    else if (word === 'ALIGN' && kind === 'quota' && words[0] === '0') limit.zone = words.shift() && 'UTC';
    else if (word === 'SHARE' && !limit.share) limit.share = number(words.shift() ?? '') ?? 0;
    else if (word === 'FORCE') limit.force = true;
    else return undefined;
  }
  if (n === undefined || period === '1mo' && !limit.zone || 'lockout' in limit && !limit.lockout) return undefined;
  const limiter = limits[kind]('k', limit);
  limiter.key = (key) => key; // without the name
  return { limiter, n, ...limit };
}

const retry = (r) => (r.retryAfter > 0 && r.retryAfter < Infinity ? r.retryAfter : -1);
const ints = (r, ms) => {
  const unit = (value) => (value < 0 || ms ? value : Math.ceil(value / 1000));
  return [r.allowed || r.peeked && retry(r) < 0 ? 0 : 1, r.limit, r.remaining, unit(retry(r)), unit(r.resetAfter)];
};

async function all(key, words, ms) {
  const parts = [];
  for (let at = key, rest = words, next; rest; rest = next) {
    const end = rest.indexOf('KEY');
    next = end < 0 ? undefined : rest.slice(end + 2);
    const clause = read(end < 0 ? rest : rest.slice(0, end), ms);
    if (!clause || clause.limiter.bounds.kind === 'slots' || clause.force) return null;
    parts.push(clause.limiter.part(at, clause.n, clause));
    at = rest[end + 1];
  }
  const result = await limits.all(...parts);
  return [...ints(result, ms), result.decider, ...result.each.map((r) => ints(r, ms))];
}

async function one(name, key, words, ms) {
  const [kind, readOnly] = name.split('_');
  const clause = read([kind, ...words], ms);
  if (!clause || clause.share || kind === 'LEASE') return null;
  const { limiter, n, force, lockout } = clause;
  if (force) return n >= 0 && !lockout && !readOnly ? ints(await limiter.settle(key, n), ms) : null;
  if (n === 0) return ints(Object.assign(await limiter.peek(key), { peeked: true }), ms);
  if (readOnly) return null;
  return ints(await (n > 0 ? limiter.allow(key, n) : limiter.refund(key, -n)), ms);
}

async function answer([name, key, ...words]) {
  const ms = words.at(-1) === 'MS';
  const rest = ms ? words.slice(0, -1) : words;
  if (rest.some((word) => word === '' || word === 'MS')) return null; // an error, or an order that the client doesn't write
  try {
    return await (name === 'GO.ALL' ? all(key, rest, ms) : name.startsWith('GO.') ? one(name.slice(3), key, rest, ms) : null);
  } catch (err) {
    if (err instanceof TypeError || err.status === 500) return null; // the transcript's own words may say more
    throw err;
  }
}

for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(await answer(JSON.parse(line))));
await limits.close();
