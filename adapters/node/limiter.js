'use strict';
const { randomUUID } = require('node:crypto');
const { setTimeout: sleep } = require('node:timers/promises');
const { Undecided } = require('./call.js');
const { bounds, milliseconds, units } = require('./limit.js');
const { Merge } = require('./merge.js');
const { Result } = require('./result.js');
const { Keeper } = require('./keeper.js');
const { Lease } = require('./lease.js');

const MOST_DENIALS = 100_000;
const LONGEST_TIMER = 2 ** 31 - 1;

const fallback = ({ failOpen, failClosed, failLocal }) => {
  if (failLocal !== undefined && !(failLocal > 0 && failLocal <= 1)) throw new TypeError('failLocal is a share: above 0, at most 1');
  return failLocal ? 'failed-local' : failClosed ? 'failed-closed' : failOpen ? 'failed-open' : undefined;
};

// What all limiters have.
class Limiter {
  constructor(limits, kind, name, limit) {
    if (typeof name !== 'string' || name === '') throw new TypeError('a limiter needs a name, which begins its keys');
    const { timeout = 250, rememberDenials = false, coalesce = true } = { ...limits.options, ...limit };
    Object.assign(this, { limits, name, timeout, rememberDenials, coalesce, bounds: bounds(kind, limit) });
    this.fallback = fallback(limit) ?? fallback(limits.options);
    this.share = limit.failLocal ?? limits.options.failLocal;
  }

  key(key) {
    if (typeof key !== 'string' && typeof key !== 'number') throw new TypeError('a key must be a string'); // Express makes arrays of some
    return `${this.limits.prefix}${this.name}:${key}`;
  }

  async reset(key) {
    this.denials?.clear();
    await this.limits.server.reset(this.key(key));
  }

  async decide(key, n, mode, most) {
    return this.limits.server.one(this.part(key, n), mode, most);
  }

  // A part of all(): n units of a key, or a slot for a holder that the caller names.
  part(key, n = 1, { share } = {}) {
    if (share !== undefined) units('share', share);
    return { limiter: this, key: this.key(key), n, share };
  }

  // Returns the replies of the fallback, and why it decided.
  async failed(err, parts, mode, most) {
    const source = this.fallback;
    if (!(err instanceof Undecided) || err.status !== 503 || source === undefined) throw err;
    const denied = source === 'failed-closed' ? 1 : 0;
    const replies = source === 'failed-local' ? await this.limits.local.decide(parts, mode, most)
      : parts.map(({ limiter }) => [denied, limiter.bounds.units, 0, denied * 1000, 0]);
    return [replies, { source, cause: err.cause }];
  }
}

// Rates, windows and quotas.
exports.Counted = class Counted extends Limiter {
  constructor(...about) {
    super(...about);
    const merges = this.coalesce && !this.bounds.lockout;
    if (merges) this.merge = new Merge(this.timeout, (part, mode) => this.limits.server.one(part, mode));
    if (this.rememberDenials) this.denials = new Map();
  }

  async allow(key, n = 1) {
    const part = this.part(key, units('units', n));
    const id = this.denials && `${n}:${part.key}`;
    const known = id && this.#remembered(id);
    if (known) return known;
    const sent = id && Date.now();
    try {
      const reply = await (this.merge && n === 1 ? this.merge.take(part) : this.limits.server.one(part));
      if (this.denials && reply[0] && reply[3] > 0) this.#remember(id, sent, reply);
      return new Result(this, reply);
    } catch (err) {
      const [[reply], more] = await this.failed(err, [part]);
      return new Result(this, reply, more);
    }
  }

  // Changes nothing. allowed is whether a unit remains. retryAfter is known only in debt or during a lockout, else 0.
  async peek(key) {
    const reply = await this.decide(key, 0, 'peek');
    return new Result(this, reply, reply[2] > 0 ? undefined : { allowed: false });
  }

  // Gives n units back, at most those in use.
  async refund(key, n = 1) { return this.settle(key, -units('units', n)); }

  // Charges a difference, past the limit if need be, or gives it back if it is below 0.
  async settle(key, difference) {
    units('difference', Math.abs(difference), 0);
    this.denials?.clear();
    return new Result(this, await this.decide(key, difference, difference < 0 ? 'upTo' : 'force'));
  }

  // Takes n units until their cost is known: see Hold.
  async hold(key, n, options) { return this.limits.hold([this.part(key, n)], options); }

  // Returns when n units are taken, or a denial if that would take longer than maxWait. A signal that is aborted gives them back.
  async wait(key, { n = 1, signal, maxWait = LONGEST_TIMER } = {}) {
    signal?.throwIfAborted();
    const most = Math.min(milliseconds('maxWait', maxWait, 0), LONGEST_TIMER);
    if (this.bounds.kind !== 'rate' || this.bounds.lockout) return this.#retry(key, n, signal, Date.now() + most);
    const part = this.part(key, units('units', n));
    const [[reply], more] = await this.limits.server.decide([part], 'reserve', most).then((replies) => [replies],
      (err) => this.failed(err, [part], 'reserve', most));
    try {
      if (reply[0] === 0) await sleep(reply[5] ?? 0, undefined, { signal });
    } catch {
      await this.settle(key, -n).catch(() => {}); // the units may then stay taken
      throw signal.reason;
    }
    return new Result(this, reply, more);
  }

  async #retry(key, n, signal, end) {
    for (;;) {
      const result = await this.allow(key, n);
      if (signal?.aborted && result.allowed) await this.refund(key, n).catch(() => {}); // the units may then stay taken
      signal?.throwIfAborted();
      const pause = result.retryAfter * (1 + Math.random() / 10); // not all come at the same time
      if (result.allowed || Date.now() + pause > end) return result;
      await sleep(Math.min(pause, LONGEST_TIMER), undefined, { signal }).catch(() => { throw signal.reason; });
    }
  }

  #remember(id, sent, reply) {
    if (this.denials.size >= MOST_DENIALS) this.denials.delete(this.denials.keys().next().value);
    this.denials.set(id, { sent, reply });
  }

  #remembered(id) {
    const denial = this.denials.get(id);
    if (!denial) return undefined;
    const passed = Date.now() - denial.sent;
    const [limited, limit, remaining, retry, reset] = denial.reply;
    if (passed >= 0 && passed < retry) {
      return new Result(this, [limited, limit, remaining, retry - passed, Math.max(0, reset - passed)], { source: 'denials' });
    }
    this.denials.delete(id);
    return undefined;
  }
};

// Slots of concurrent holders.
exports.Slots = class Slots extends Limiter {
  // Takes a slot, which renews itself until release().
  async lease(key) {
    const part = this.part(key, randomUUID());
    const sent = Keeper.now();
    const { server, local } = this.limits;
    try {
      return new Lease(part, server, sent, (await server.decide([part]))[0]);
    } catch (err) {
      server.forget?.(err, part.key, part.n);
      const [[reply], more] = await this.failed(err, [part]);
      return new Lease(part, local, sent, reply, more);
    }
  }

  async release(key, id) { return await this.limits.server.release(this.key(key), id) === 1; }
};
