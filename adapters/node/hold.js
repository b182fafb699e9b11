'use strict';
const { randomUUID } = require('node:crypto');
const { setTimeout: sleep } = require('node:timers/promises');
const { Keeper } = require('./keeper.js');
const { units } = require('./limit.js');
const { Result } = require('./result.js');
const { clause } = require('./server.js');

// Returns the key of what is held, which is in the slot of the limiter's key.
function heldKey(key) {
  if (/^[^{]*\{[^}]+\}/.test(key)) return `${key}:held`;
  if (/[{}]/.test(key)) throw new TypeError(`the key ${key} has a brace but no hash tag: a hold needs another`);
  return `{${key}}:held`;
}

// Takes units until their cost is known: a LEASE of so many slots, which may not exceed what the limit has left.
exports.hold = async function hold(part, { ttl, deadline }) {
  const held = { part, ttl, key: heldKey(part.key), until: Date.now() + deadline };
  const { limiter, n } = part;
  const { server, local } = limiter.limits;
  if (!server.ask) return new LocalHold(part, server, ...await server.decide([part]));
  try {
    const { reply, id, sent } = await take(held, n);
    return new Hold(held, id, sent, reply);
  } catch (err) {
    const [reply, more] = await limiter.failed(err, async () => (await local.decide([part]))[0]);
    return more.source === 'failed-local' ? new LocalHold(part, local, reply, more) : new Hold(held, undefined, undefined, reply, more);
  }
};

const ask = ({ part: { limiter } }, ...words) => limiter.limits.server.ask(...words, limiter.timeout);

// Each try has an id of its own: one without a reply is forgotten, and lapses.
async function take(held, n) {
  const { part, key, ttl } = held;
  const [id, sent] = [randomUUID(), Keeper.now()];
  const words = [...clause({ ...part, n: 0 }), 'KEY', key, 'LEASE', part.limiter.bounds.units, ttl, id, n, 'SHARE', 1, 'MS'];
  try {
    return { id, sent, reply: await ask(held, 'GO.ALL', [part.key, key], words) };
  } catch (err) {
    ask(held, 'GO.RELEASE', key, [id]).catch(() => {});
    throw err;
  }
}

class Hold extends Result {
  #held; #id; #keeper; #ended;

  constructor(held, id, sent, reply, more) {
    super(held.part.limiter, reply, more);
    this.#held = held;
    if (this.allowed && id) this.#keep(id, sent);
  }

  #keep(id, sent) {
    const { part: { limiter }, key, ttl, until } = this.#held;
    this.#id = id;
    this.#keeper = new Keeper(limiter.limits.leases, { ttl, release: () => ask(this.#held, 'GO.RELEASE', key, [id]),
      renew: async () => (await ask(this.#held, 'GO.LEASE', key, [limiter.bounds.units, ttl, id, 0, 'MS']))[0] === 0 }, sent, until);
  }

  // Charges the cost in place of what was held, and returns whether it is counted: 'counted', 'unknown', or 'refused', if the
  // hold was lost and a new one is denied.
  async settle(cost) {
    if (!this.allowed) throw new TypeError('the hold was denied');
    this.#ended ??= this.#charge(units('cost', cost, 0)).catch((err) => {
      this.#ended = undefined; // nothing is counted: the caller may try again
      throw err;
    });
    return this.#ended;
  }

  // Gives the units back, unless settle() was called.
  async release() {
    if (this.#ended) return;
    this.#ended = Promise.reject(new TypeError('the hold was released'));
    this.#ended.catch(() => {});
    this.#keeper?.stop();
    await this.#keeper?.release();
  }

  // Repeats the call until there is a reply or the hold lapses: docs/proofs.md says how replies are read.
  async #charge(cost) {
    const { part, key, ttl } = this.#held;
    for (let unsure = false; ;) {
      this.#keeper?.stop();
      if (!this.#id) {
        const { reply, id, sent } = await take(this.#held, 1);
        if (reply[0] !== 0) return 'refused';
        this.#keep(id, sent);
        this.#keeper.stop();
        unsure = false;
      }
      const words = [...clause({ ...part, n: cost }, 'force'), 'KEY', key, 'RELEASE', this.#id, 'FORCE', 'MS'];
      const said = await ask(this.#held, 'GO.ALL', [part.key, key], words).then(([limited]) => ({ limited }), (err) => ({ err }));
      const lasts = this.#keeper.rest(ttl / 10) > 0; // the server's clock may be ahead
      if (said.limited === 0 || said.limited && unsure && lasts) return 'counted'; // now, or by the try without a reply
      if (said.limited && !unsure) this.#id = undefined; // it was lost, and nothing was charged
      else if (said.err?.status === 500 && !unsure) throw said.err;
      else if (said.limited || said.err.status === 500 || !lasts) return 'unknown';
      else {
        unsure ||= !said.err.cause?.unsent;
        await sleep(Math.min(ttl / 20, 1000));
      }
    }
  }
}

// Units that this process decides about are taken, and the difference is settled.
class LocalHold extends Result {
  #part; #server; #ended = false;

  constructor(part, server, reply, more) {
    super(part.limiter, reply, more);
    [this.#part, this.#server] = [part, server];
  }

  async settle(cost) {
    if (!this.allowed || this.#ended) throw new TypeError('the hold was denied, or has ended');
    this.#ended = true;
    const n = units('cost', cost, 0) - this.#part.n;
    await this.#server.decide([{ ...this.#part, n }], n < 0 ? 'upTo' : 'force');
    return 'counted';
  }

  async release() { if (this.allowed && !this.#ended) await this.settle(0); }
}
