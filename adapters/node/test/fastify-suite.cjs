// Runs the tests that @fastify/rate-limit has for its store for Redis, which npm installs, over the adapter: node
// fastify-suite.cjs. In these tests our store takes the place of the framework's, and ADDR of Redis's default port.
const Module = require('node:module');
const plugin = require('@fastify/rate-limit');
const { gothrottleStore } = require('gothrottle-adapters/fastify-rate-limit');
const { Redis } = require('ioredis');

const [host, port] = process.env.ADDR.split(':');
let limiters = 0;

function overAdapter(app, { redis, nameSpace, ...settings }, done) {
  limiters += 1;
  const send = (...words) => redis.call(...words);
  const store = gothrottleStore({ send, prefix: nameSpace ?? `limiter ${limiters}`, timeout: 5000, log() {} });
  plugin.default(app, redis ? { ...settings, store } : settings).then(() => done(), done);
}
for (const symbol of Object.getOwnPropertySymbols(plugin)) overAdapter[symbol] = plugin[symbol];

const load = Module._load;
Module._load = function replaced(request, ...more) {
  if (request === '../index') return overAdapter;
  if (request === 'ioredis') return class extends Redis { constructor(options) { super({ ...options, host, port }); } };
  return load.call(this, request, ...more);
};

const wait = setTimeout; // the tests wait so long for a limit: the server's clock takes no time
globalThis.setTimeout = (f, ms, ...more) => {
  if (![100, 1000, 1100, 2000].includes(ms)) return wait(f, ms, ...more);
  const clock = new Redis({ host, port });
  return clock.call('DEBUG', 'ADVANCE', `${ms}ms`).then(() => clock.quit()).then(f);
};
require('@fastify/rate-limit/test/redis-rate-limit.test.js');
