// @fastify/rate-limit with its counters in the server. The class is all you need of this file.
import rateLimit from '@fastify/rate-limit';
import fastify from 'fastify';
import server from './server.js';

// The windows of the framework, which counts denied requests too and compares with the limit by itself.
// continueExceeding and exponentialBackoff have no effect.
export class GothrottleStore {
  constructor(options, prefix = 'gothrottle:fastify:') { this.prefix = prefix; }
  child({ routeInfo: { method = '', url = '' } }) { return new GothrottleStore({}, `${this.prefix}${method}${url}:`); }
  incr(key, callback, window) { this.count(key, window, 1).then((res) => callback(null, res), callback); }
  read(key, callback, window) { this.count(key, window, 0).then((res) => callback(null, res), callback); }
  async count(key, window, units) {
    const reply = await server.call('GO.QUOTA', this.prefix + key, 1e12, window, units, 'MS');
    return { current: reply[1] - reply[2], ttl: reply[4] };
  }
}

const app = fastify();
await app.register(rateLimit, {
  store: GothrottleStore, max: 5, timeWindow: 60_000, keyGenerator: (req) => req.query.user,
  skipOnError: true, // fail open; false: errors of the server are errors of the request
});
app.get('/', async () => 'hello\n');
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
