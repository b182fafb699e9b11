'use strict';
const { caller } = require('./call.js');

// GCRA: calls that have drained are free again, one by one. A denial begins blockDuration.
exports.GothrottleStorage = class GothrottleStorage {
  constructor(options) {
    this.call = caller(options);
    this.prefix = `gothrottle:nest:${options.prefix}:`;
  }

  async increment(key, ttl, limit, blockDuration) {
    const block = blockDuration > 0 ? ['LOCKOUT', blockDuration] : [];
    const words = [this.prefix + key, limit - 1, limit, ttl, 1, 'MS', ...block];
    const [limited, , remaining, retry, reset] = await this.call('GO.THROTTLE', ...words) ?? [0, limit, limit, -1, 0];
    return {
      totalHits: limit - remaining + limited,
      timeToExpire: Math.ceil(reset / 1000),
      isBlocked: limited === 1,
      timeToBlockExpire: Math.max(0, Math.ceil(retry / 1000)),
    };
  }
};
