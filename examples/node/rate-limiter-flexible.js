// rate-limiter-flexible with GCRA in the server. The class is all you need of this file. A denial begins blockDuration.
import express from 'express';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import RateLimiterStoreAbstract from 'rate-limiter-flexible/lib/RateLimiterStoreAbstract.js';
import server from './server.js';
export class RateLimiterGothrottle extends RateLimiterStoreAbstract {
  constructor(opts) { super({ keyPrefix: 'gothrottle:rlflx', ...opts }); this.client = opts.storeClient; }
  ask(key, ms, ...more) {
    return this.client.call('GO.THROTTLE', key, this.points - 1, this.points, ms, ...more, 'MS');
  }
  async _upsert(key, points, ms, force) { // force: block() and set()
    const full = () => this.ask(key, this.msDuration, this.points, 'LOCKOUT', ms);
    if (force && points > this.points) return full().then(full); // the second is denied. A block keeps its end.
    if (force) await this._delete(key); // set() forgets what was
    const block = this.blockDuration > 0 ? ['LOCKOUT', this.msBlockDuration] : [];
    return this.ask(key, ms, points, ...(force ? ['FORCE'] : block));
  }
  async _penalty(key, points = 1) {
    return this._getRateLimiterRes(key, points, await this.ask(this.getKey(key), this.msDuration, points, 'FORCE'));
  }
  _crossedBlockThreshold() { return false; } // LOCKOUT has blocked already
  async _get(key) {
    const reply = await this.client.call('GO.THROTTLE_RO', key, this.points - 1, this.points, this.msDuration, 0, 'MS');
    return reply[4] > 0 ? reply : null;
  }
  async _delete(key) { return await this.client.del(key) > 0; }
  _getRateLimiterRes(key, changed, [limited, limit, remaining, retry, reset]) {
    const consumed = limit - remaining + (limited ? Math.max(changed, 1) : 0);
    return new RateLimiterRes(remaining, retry > 0 ? retry : reset, consumed, consumed === changed);
  }
}
const limits = { points: 5, duration: 60, blockDuration: 30 };
const insuranceLimiter = new RateLimiterMemory(limits); // decides while the server is away
const limiter = new RateLimiterGothrottle({ ...limits, storeClient: server, insuranceLimiter });
express().get('/', (req, res) => limiter.consume(req.query.user).then(() => res.send('hello\n'), (denial) => {
  if (denial instanceof Error) throw denial; // without an insurance limiter
  if (denial.msBeforeNext > 0) res.set('Retry-After', String(Math.ceil(denial.msBeforeNext / 1000)));
  res.status(429).send('too many requests\n');
})).listen(process.env.PORT, '127.0.0.1');
