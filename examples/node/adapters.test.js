// What a framework asks of a store, without requests: TestAdapters runs this file on a real server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible';
import server from './server.js';

process.env.PORT = '0'; // the programs listen too
const { GothrottleStore: ExpressStore } = await import('./express-rate-limit.js');
const { GothrottleStore: FastifyStore } = await import('./fastify-rate-limit.js');
const { GothrottleStorage } = await import('./nestjs-throttler.js');
const { RateLimiterGothrottle } = await import('./rate-limiter-flexible.js');

const hour = 3_600_000;

test('express-rate-limit', async () => {
  const store = new ExpressStore((...words) => server.call(...words), 'test:');
  store.init({ windowMs: hour });
  const hits = async (verb) => (await store[verb]('bob')).totalHits;
  assert.deepEqual([await hits('increment'), await hits('increment'), await hits('get')], [1, 2, 2]);
  const { resetTime } = await store.get('bob');
  assert.ok(resetTime > Date.now() && resetTime <= Date.now() + hour + 1000, resetTime);
  await store.decrement('bob');
  assert.equal(await hits('increment'), 2);
  await store.resetKey('bob');
  assert.deepEqual([await hits('get'), await hits('increment')], [0, 1]);
  assert.equal(await server.exists(`${store.prefix}bob`), 1);
});

test('@fastify/rate-limit', async () => {
  const root = new FastifyStore({}, 'test:fastify:');
  const ask = (store, verb) => new Promise((resolve, reject) => {
    store[verb]('bob', (err, reply) => (err ? reject(err) : resolve(reply)), hour, 5);
  });
  const child = root.child({ routeInfo: { method: 'GET', url: '/a' } });
  assert.equal((await ask(root, 'incr')).current, 1);
  const { current, ttl } = await ask(root, 'incr');
  assert.ok(current === 2 && ttl > 0 && ttl <= hour, `${current} ${ttl}`);
  assert.equal((await ask(root, 'read')).current, 2);
  assert.equal((await ask(child, 'incr')).current, 1);
  assert.equal((await ask(root.child({ routeInfo: { method: 'GET', url: '/b' } }), 'read')).current, 0);
});

test('@nestjs/throttler', async () => {
  const storage = new GothrottleStorage();
  const hit = () => storage.increment('test:nest', hour, 2, 2 * hour, 'default');
  assert.deepEqual(await hit(), { totalHits: 1, timeToExpire: 1800, isBlocked: false, timeToBlockExpire: -0 });
  assert.equal((await hit()).totalHits, 2);
  const { totalHits, isBlocked, timeToBlockExpire } = await hit();
  assert.deepEqual([totalHits, isBlocked, timeToBlockExpire], [3, true, 7200]);
});

// The verbs do what they do with the store of the framework, but for the times, and for the points of denied calls.
const verbs = {
  consume: [['consume', 2], ['consume', 3], ['consume', 1], ['get'], ['delete'], ['delete'], ['get'], ['consume', 6]],
  penalty: [['penalty', 2], ['get'], ['reward', 1], ['consume', 4], ['penalty', 3], ['reward', 3], ['consume', 1]],
  block: [['consume', 2], ['block', 60], ['get'], ['consume'], ['delete'], ['consume'], ['block', 60], ['consume']],
  set: [['consume'], ['set', 3, 60], ['get'], ['consume', 2], ['set', 9, 60], ['consume'], ['set', 0, 60], ['consume']],
};

async function life(Limiter, name) {
  const limiter = new Limiter({ storeClient: server, points: 5, duration: 3600, keyPrefix: `test:${Limiter.name}` });
  const told = [];
  for (const [verb, ...args] of verbs[name]) {
    const tell = (how) => (res) => {
      if (res instanceof Error) throw res;
      told.push([verb, how, res?.consumedPoints === undefined ? res : Math.min(res.consumedPoints, 5)]);
    };
    await limiter[verb](name, ...args).then(tell('resolved'), tell('rejected'));
  }
  return told;
}

for (const name of Object.keys(verbs)) {
  test(`rate-limiter-flexible: ${name}`, async () => {
    assert.deepEqual(await life(RateLimiterGothrottle, name), await life(RateLimiterRedis, name));
  });
}

// A service that moves from a framework's own store to an adapter finds the keys of that store, of another type.
test('keys of other stores', async () => {
  await server.set('rl:bob', 3); // rate-limit-redis
  const store = new ExpressStore((...words) => server.call(...words));
  store.init({ windowMs: hour });
  assert.equal((await store.increment('bob')).totalHits, 1);
  const limits = { points: 5, duration: 3600, storeClient: server };
  await new RateLimiterRedis(limits).consume('bob');
  assert.equal((await new RateLimiterGothrottle(limits).consume('bob')).consumedPoints, 1);
  await new GothrottleStorage().increment('bob', hour, 5, 0, 'default');
  await new Promise((resolve) => { new FastifyStore().incr('bob', resolve, hour); });
  assert.equal((await server.keys('gothrottle:*bob')).length, 4);
});

test('rate-limiter-flexible: the insurance also blocks', async () => {
  const limits = { points: 5, duration: 3600 };
  const away = { call: () => Promise.reject(new Error('away')), del: () => Promise.reject(new Error('away')) };
  const insuranceLimiter = new RateLimiterMemory(limits);
  const limiter = new RateLimiterGothrottle({ ...limits, storeClient: away, insuranceLimiter });
  assert.equal((await limiter.consume('bob')).remainingPoints, 4);
  await limiter.block('bob', 60);
  const denial = await limiter.consume('bob').catch((res) => res);
  assert.ok(denial.msBeforeNext > 50_000 && denial.msBeforeNext <= 60_000, denial.msBeforeNext);
  await limiter.delete('bob');
  assert.equal((await limiter.consume('bob')).remainingPoints, 4);
});
