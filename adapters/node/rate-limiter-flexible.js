'use strict';
const { RateLimiterRes } = require('rate-limiter-flexible');
const RateLimiterStoreAbstract = require('rate-limiter-flexible/lib/RateLimiterStoreAbstract.js');
const { caller } = require('./call.js');

// GCRA: points come back one by one, and a denied call takes none. A denial begins blockDuration.
exports.RateLimiterGothrottle = class RateLimiterGothrottle extends RateLimiterStoreAbstract {
  constructor(options = {}) {
    const { client, send, keyPrefix: prefix, timeout, log, script } = options;
    super(options);
    this.client = caller({ client, send, prefix, timeout, log, script });
  }

  getKey(key) { return `gothrottle:rlflx:${super.getKey(key)}`; }

  parseKey(key) { return super.parseKey(key.replace('gothrottle:rlflx:', '')); }

  ask(key, ms, ...more) { return this.client('GO.THROTTLE', key, this.points - 1, this.points, ms, ...more, 'MS'); }

  async _upsert(key, points, ms, force) { // force: block() and set()
    const full = () => this.ask(key, this.msDuration, this.points, 'LOCKOUT', ms);
    if (force) await this._delete(key); // forgets what was: a block that runs would keep its end
    if (force && points > this.points) { // the second call is denied, and begins the block. The third frees all for its end
      return full().then(full).then(() => this.ask(key, this.msDuration, -this.points));
    }
    const block = this.blockDuration > 0 ? ['LOCKOUT', this.msBlockDuration] : [];
    return this.ask(key, ms, points, ...(force ? ['FORCE'] : block));
  }

  async _penalty(key, points = 1, options = {}) {
    const ms = this._getKeySecDuration(options) * 1000;
    return this._getRateLimiterRes(key, points, await this.ask(this.getKey(key), ms, points, 'FORCE'));
  }

  _crossedBlockThreshold() { return false; } // LOCKOUT has blocked already

  // Asks for one point more. While none is left, the answer is that of consume(): above points, and how long until the next.
  async _get(key) {
    const reply = await this.client('GO.THROTTLE_RO', key, this.points - 1, this.points, this.msDuration, 1, 'MS');
    const [limited, limit, remaining, , reset] = reply;
    if (limited) return reply;
    return remaining + 1 < limit ? [0, limit, remaining + 1, -1, Math.ceil(reset - this.msDuration / this.points)] : null;
  }

  async _delete(key) { return (await this.client('DEL', key))[0] > 0; }

  _getRateLimiterRes(key, changed, [limited, limit, remaining, retry, reset]) {
    const consumed = limit - remaining + (limited ? Math.max(changed, 1) : 0);
    return new RateLimiterRes(remaining, retry > 0 ? retry : reset, consumed, consumed === changed);
  }
};
