'use strict';
const { caller } = require('./call.js');

// The windows of the framework, which counts denied requests too and compares with the limit by itself.
exports.GothrottleStore = class GothrottleStore {
  constructor(options) {
    this.call = caller(options);
    this.prefix = `gothrottle:rl:${options.prefix}:`;
  }

  init({ windowMs }) { this.windowMs = windowMs; }

  increment(key) { return this.count(key, 1); }

  // Older versions of the framework do not catch an error of this call, and the process would end.
  async decrement(key) { await this.count(key, -1).catch(() => {}); }

  async get(key) {
    const info = await this.count(key, 0);
    return info.totalHits > 0 ? info : undefined;
  }

  async resetKey(key) { await this.call('DEL', this.prefix + key); }

  async count(key, units) {
    const reply = await this.call('GO.QUOTA', this.prefix + key, 1e12, this.windowMs, units, 'MS');
    const [, limit, remaining, , reset] = reply ?? [0, 1, 0, -1, this.windowMs]; // the framework wants 1 or more
    return { totalHits: limit - remaining, resetTime: new Date(Date.now() + reset) };
  }
};
