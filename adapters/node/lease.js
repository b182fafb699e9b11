'use strict';
const { Keeper } = require('./keeper.js');
const { Result } = require('./result.js');

// A slot that this process holds, if it is allowed. It renews itself until release().
exports.Lease = class Lease extends Result {
  #keeper;

  constructor(part, server, sent, reply, more) {
    super(part.limiter, reply, more);
    this.id = part.n;
    if (!this.allowed || this.source === 'failed-open') return;
    const { bounds, limits } = part.limiter;
    this.#keeper = new Keeper(limits.leases, { ttl: bounds.period,
      renew: async () => (await server.decide([{ ...part, n: [part.n, 0] }]))[0][5] === 1, // 0: one that is late takes nothing
      release: () => server.release(part.key, part.n) }, sent);
  }

  // Is aborted if the slot is lost: another holder may then have it.
  get signal() { return this.#keeper?.signal ?? new AbortController().signal; }

  // Keeps the slot for another ttl, and returns whether it was still held.
  async renew() { return this.#keeper ? this.#keeper.again() : false; }

  // Gives the slot back. If the server doesn't reply, it lapses by itself.
  async release() {
    this.#keeper?.stop();
    await this.#keeper?.release();
  }
};
