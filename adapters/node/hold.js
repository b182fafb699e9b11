'use strict';
const { randomUUID } = require('node:crypto');
const { setTimeout: sleep } = require('node:timers/promises');
const { Keeper } = require('./keeper.js');
const { milliseconds, units } = require('./limit.js');
const { Result } = require('./result.js');
const { clause } = require('./server.js');

// Returns the key of what is held, which is in the slot of the limiter's key.
function heldKey(key) {
  if (/^[^{]*\{[^}]+\}/.test(key)) return `${key}:held`;
  if (/[{}]/.test(key)) throw new TypeError(`the key ${key} has a brace but no hash tag: a hold needs another`);
  return `{${key}}:held`;
}

function checked(parts) {
  if (!(parts?.length > 0) || parts.some(({ limiter, share }) => limiter.bounds.kind === 'slots' || share)) {
    throw new TypeError('a hold needs parts of rates, windows or quotas, without share');
  }
  return parts;
}

// Takes the units of all parts until their cost is known, or none: of each a LEASE of so many slots, which may not exceed what
// its limit has left.
exports.hold = async function hold(limits, parts, { ttl = '30s', deadline = '1h' } = {}) {
  const held = new Held(checked(parts), milliseconds('ttl', ttl), milliseconds('deadline', deadline, 0));
  for (const { n } of parts) units('units', n);
  const here = (by, replies, more) => {
    const reply = replies.find(([limited]) => limited) ?? replies[0];
    return new Hold(parts[replies.indexOf(reply)].limiter, reply, new HeldHere(parts, by), more);
  };
  if (!limits.server.ask) return here(limits.server, await limits.server.decide(parts));
  try {
    const reply = await held.take();
    return new Hold(parts[reply[5] >> 1].limiter, reply, held);
  } catch (err) {
    const [replies, more] = await parts[0].limiter.failed(err, parts);
    return more.source === 'failed-local' ? here(limits.local, replies, more) : new Hold(parts[0].limiter, replies[0], held, more);
  }
};

// Returns the hold of a ticket, which another process may have taken.
exports.resume = function resume(limits, ticket, parts, { ttl = '30s' } = {}) {
  const [, id, end] = /^([^.]+)\.([0-9a-z]{1,11})$/i.exec(ticket) ?? [];
  if (ticket !== '' && !id) throw new TypeError('the ticket is not of a hold');
  const there = new Held(checked(parts), milliseconds('ttl', ttl), 0);
  if (id) there.resume(id, parseInt(end, 36));
  const held = limits.server.ask ? there : new HeldHere(parts.map((part) => ({ ...part, n: 0 })), limits.server);
  return new Hold(parts[0].limiter, [0, parts[0].limiter.bounds.units, 0, 0, 0], held);
};

class Hold extends Result {
  #held; #ended;

  constructor(limiter, reply, held, more) {
    super(limiter, reply, more);
    this.#held = held;
  }

  get ticket() { return this.#held.ticket; }

  // Charges the cost in place of what was held, and returns whether it is counted: 'counted', 'unknown', or 'refused', if the
  // hold was lost and a new one is denied.
  async settle(cost) {
    if (!this.allowed) throw new TypeError('the hold was denied');
    this.#ended ??= this.#held.charge(units('cost', cost, 0)).catch((err) => {
      this.#ended = undefined; // nothing is counted: the caller may try again
      throw err;
    });
    return this.#ended;
  }

  // Gives the units back, unless settle() was called.
  async release() {
    if (this.#ended || !this.allowed) return;
    this.#ended = Promise.reject(new TypeError('the hold was released'));
    this.#ended.catch(() => {});
    await this.#held.release();
  }
}

// What a server holds.
class Held {
  #keeper; #id; #unsure = false; // unsure: a settlement may have come

  constructor(parts, ttl, deadline) {
    const held = parts.map((part) => ({ ...part, held: heldKey(part.key) }));
    Object.assign(this, { parts: held, ttl, deadline, until: Date.now() + deadline, limits: parts[0].limiter.limits });
  }

  get ticket() { return this.#id ? `${this.#id}.${Math.floor(this.#keeper.sent[0] + this.ttl - this.ttl / 10).toString(36)}` : ''; }

  resume(id, lapses) {
    const clocks = Keeper.now();
    const ago = clocks[0] - lapses + this.ttl - this.ttl / 10; // since it was sent
    this.keep(id, clocks.map((now) => now - ago));
    this.#unsure = true;
  }

  keep(id, sent) {
    this.#id = id;
    const renew = async () => (await this.#ask((part) => [[part.held, this.#lease(part, id, 0)]]))[0] === 0;
    this.#keeper = new Keeper(this.limits.leases, { ttl: this.ttl, renew, release: () => this.#giveBack(id) }, sent, this.until);
    if (this.deadline === 0) this.#keeper.stop(); // others may end it, also after this process
  }

  #lease({ limiter }, id, n) { return ['LEASE', limiter.bounds.units, this.ttl, id, n]; }

  #ask(clauses, ...last) { return this.limits.server.all(this.parts, this.parts.flatMap(clauses), ...last); }

  #giveBack(id) { return Promise.all(this.parts.map(({ held }) => this.limits.server.release(held, id))); }

  // Each try has an id of its own: one without a reply is forgotten.
  async take(one) {
    const [id, sent] = [randomUUID(), Keeper.now()];
    try {
      const reply = await this.#ask((part) => [[part.key, clause({ ...part, n: 0 })],
        [part.held, [...this.#lease(part, id, one ?? part.n), 'SHARE', 1]]]);
      if (reply[0] === 0) this.keep(id, sent);
      return reply;
    } catch (err) {
      for (const { held } of this.parts) this.limits.server.forget(err, held, id);
      throw err;
    }
  }

  async release() {
    this.#keeper?.stop();
    await (this.#id && this.#giveBack(this.#id));
  }

  // Repeats the call until there is a reply or the hold lapses: docs/proofs.md says how replies are read.
  async charge(cost) {
    for (;;) {
      this.#keeper?.stop();
      if (!this.#id) {
        if ((await this.take(1))[0] !== 0) return 'refused';
        this.#keeper.stop();
        this.#unsure = false;
      }
      const said = await this.#ask((part) => [[part.key, clause({ ...part, n: cost }, 'force')], [part.held, ['RELEASE', this.#id]]], 'FORCE')
        .then(([limited]) => ({ limited }), (err) => ({ err }));
      const lasts = this.#keeper.rest(this.ttl / 10) > 0; // the server's clock may be ahead
      if (said.limited === 0 || said.limited && this.#unsure && lasts) return 'counted'; // now, or by the try without a reply
      if (said.limited && !this.#unsure) this.#id = undefined; // it was lost, and nothing was charged
      else if (said.err?.status === 500 && !this.#unsure) throw said.err;
      else if (said.limited || said.err.status === 500 || !lasts) return 'unknown';
      else {
        this.#unsure ||= !said.err.unsent;
        await sleep(Math.min(this.ttl / 20, 1000));
      }
    }
  }
}

// Units that this process decides about are taken, and the difference is settled.
class HeldHere {
  ticket = '';

  constructor(parts, by) { Object.assign(this, { parts, by }); }

  async charge(cost) {
    await this.by.decide(this.parts.map((part) => ({ ...part, n: cost - part.n })), 'force');
    return 'counted';
  }

  release() { return this.charge(0); }
}
