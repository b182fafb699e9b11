'use strict';
const { Result } = require('./result.js');

const LONGEST_TIMER = 2 ** 31 - 1;

// A slot that this process holds, if it is allowed. It renews itself every third of its ttl until release().
exports.Lease = class Lease extends Result {
  #part; #server; #sent; #timer;
  #lost = new AbortController();

  constructor(part, server, sent, reply, more) {
    super(part.limiter, reply, more);
    [this.id, this.#part, this.#server, this.#sent] = [part.n, part, server, sent];
    if (!this.#holds) return;
    part.limiter.limits.leases.add(this);
    this.#later(this.#ttl / 3);
  }

  // Is aborted if the slot is lost: another holder may then have it.
  get signal() { return this.#lost.signal; }

  // Keeps the slot for another ttl, and returns whether it was still held.
  async renew() {
    const sent = Date.now();
    const [reply] = await this.#server.decide([this.#part]);
    if (reply[5] === 1) this.#sent = sent;
    else await this.#lose('the slot had lapsed, or was released');
    return reply[5] === 1;
  }

  // Gives the slot back. If the server doesn't reply, it lapses by itself.
  async release() {
    this.#end();
    if (this.#holds) await this.#server.release(this.#part.key, this.id);
  }

  get #holds() { return this.allowed && this.source !== 'failed-open'; }

  get #ttl() { return this.#part.limiter.bounds.period; }

  #later(ms) {
    const lapses = Math.max(0, this.#sent + this.#ttl - Date.now());
    this.#timer = setTimeout(() => this.#tick(), Math.min(ms, lapses, LONGEST_TIMER)).unref();
  }

  async #tick() {
    if (Date.now() >= this.#sent + this.#ttl) return this.#lose(`the slot could not be renewed within ${this.#ttl} ms`);
    const held = await this.renew().catch(() => undefined); // undefined: nobody knows
    if (this.#timer && held !== false) this.#later(held ? this.#ttl / 3 : this.#ttl / 10);
    return undefined;
  }

  #end() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#part.limiter.limits.leases.delete(this);
  }

  async #lose(why) { // a renewal that came too late may have taken a slot
    this.#end();
    this.#lost.abort(new Error(why));
    await this.#server.release(this.#part.key, this.id).catch(() => {});
  }
};
