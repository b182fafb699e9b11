'use strict';

const LONGEST_TIMER = 2 ** 31 - 1;
const clocks = () => [Date.now(), performance.now()]; // if the machine was suspended, only the first one has gone on

// Renews what a server holds for ttl ms after the call that took it was sent, every third of the ttl. renew() returns whether
// it was still held, release() gives it back. No timer keeps the process alive.
exports.Keeper = class Keeper {
  #timer;
  #lost = new AbortController();

  constructor(leases, slot, sent, until = Infinity) {
    Object.assign(this, { leases, ...slot, sent, until });
    leases.add(this);
    this.#later(this.ttl / 3);
  }

  static now() { return clocks(); }

  get signal() { return this.#lost.signal; }

  // Returns for how long the server holds it at least, in ms, if its clock is ahead by no more than this.
  rest(ahead = 0) { return this.ttl - ahead - Math.max(...clocks().map((now, i) => now - this.sent[i])); }

  async again() {
    const sent = clocks();
    const held = await this.renew();
    if (held) this.sent = sent;
    else await this.#lose('it had lapsed, or was released');
    return held;
  }

  stop() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.leases.delete(this);
  }

  #later(ms) { this.#timer = setTimeout(() => this.#tick(), Math.min(ms, Math.max(0, this.rest()), LONGEST_TIMER)).unref(); }

  async #tick() {
    if (Date.now() > this.until) return this.stop();
    if (this.rest() <= 0) return this.#lose(`it could not be renewed within ${this.ttl} ms`);
    const held = await this.again().catch(() => undefined); // undefined: nobody knows
    if (this.#timer && held !== false) this.#later(held ? this.ttl / 3 : this.ttl / 10);
    return undefined;
  }

  async #lose(why) { // the server may have it still
    this.stop();
    this.#lost.abort(new Error(`the slot is lost: ${why}`));
    await this.release().catch(() => {});
  }
};
