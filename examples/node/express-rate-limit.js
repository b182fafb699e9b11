// express-rate-limit with its counters in the server. The class is all you need of this file.
import express from 'express';
import { rateLimit } from 'express-rate-limit';
import server from './server.js';

// The windows of the framework, which counts denied requests too and compares with the limit by itself. For GCRA use no
// framework: see ioredis.js.
export class GothrottleStore {
  constructor(send, prefix = 'gothrottle:rl:') { Object.assign(this, { send, prefix }); }
  init({ windowMs }) { this.windowMs = windowMs; }
  increment(key) { return this.count(key, 1); }
  decrement(key) { return this.count(key, -1); }
  get(key) { return this.count(key, 0); }
  resetKey(key) { return this.send('DEL', this.prefix + key); }
  async count(key, units) {
    const reply = await this.send('GO.QUOTA', this.prefix + key, 1e12, this.windowMs, units, 'MS');
    return { totalHits: reply[1] - reply[2], resetTime: new Date(Date.now() + reply[4]) };
  }
}

express().use(rateLimit({
  store: new GothrottleStore((...words) => server.call(...words)),
  windowMs: 60_000, limit: 5, standardHeaders: 'draft-8', keyGenerator: (req) => req.query.user,
  passOnStoreError: true, // fail open; false: errors of the server are errors of the request
})).get('/', (req, res) => res.send('hello\n')).listen(process.env.PORT, '127.0.0.1');
