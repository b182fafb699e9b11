// What a framework asks of a store, without requests: TestAdapters runs this file on a server in memory.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mock, test } from 'node:test';
import fastifyRateLimit from '@fastify/rate-limit';
import LocalStore from '@fastify/rate-limit/store/LocalStore.js';
import { ThrottlerStorageService } from '@nestjs/throttler';
import express from 'express';
import { MemoryStore, rateLimit } from 'express-rate-limit';
import createFastify from 'fastify';
import { connect } from 'gothrottle';
import { expressStore, fastifyStore, nestStorage } from 'gothrottle/stores';
import { Redis } from 'ioredis';

const server = new Redis(`redis://${process.env.ADDR}`, { maxRetriesPerRequest: 0 });
const strings = async (...words) => [await server.call(...words)].flat().map(String); // as some clients answer
const limits = await connect(strings, { timeout: 20_000 });
const hour = 3_600_000;
const onExpress = (store) => {
  store.init({ windowMs: hour });
  return store;
};

// The stores answer random calls as the frameworks' own do. The class and the calls have the differences, of stores.d.ts.
class OwnExpress extends MemoryStore {
  windowMs = hour;

  async decrement(key) { // of the last hit ends the window
    await super.decrement(key);
    if (this.current.get(key).totalHits === 0) await this.resetKey(key);
  }
}
const askExpress = (verb) => async (store, key) => {
  const info = await store[verb](key);
  return info && [info.totalHits, info.resetTime - Date.now()];
};
const askFastify = (verb) => (store, key) => new Promise((resolve, reject) => {
  store[verb](key, (err, res) => (err ? reject(err) : resolve([res.current, res.ttl])), hour, 5);
});
const askNest = (block) => async (store, key) => { // the wait for one call differs, and so do the hits that a block leaves
  const { isBlocked, totalHits, timeToBlockExpire } = await store.increment(key, hour, 3, block, 'default');
  return isBlocked ? ['blocked', block && timeToBlockExpire] : [totalHits];
};
const any = () => [1, hour / 3, hour - 1, hour];
const untilFree = () => [100 * hour]; // while some units get free, a rate and a window differ
const nests = (name) => [nestStorage(limits, name), new ThrottlerStorageService()];
const table = { // the stores, the calls, and which times may pass after an answer
  'express-rate-limit': [(name) => [onExpress(expressStore(limits, name)), new OwnExpress()],
    ['increment', 'increment', 'decrement', 'get', 'resetKey'].map(askExpress), any],
  '@fastify/rate-limit': [(name) => [new (fastifyStore(limits, name))({}), new LocalStore()], ['incr', 'read'].map(askFastify), any],
  '@nestjs/throttler': [nests, [askNest(0)], untilFree],
  '@nestjs/throttler that blocks': [nests, [askNest(2 * hour)], (last) => (last?.[1] ? [hour / 6, 2 * hour] : [hour])],
};

for (const [name, [make, calls, times]] of Object.entries(table)) {
  test(name, async (t) => { // in time that stands still
    mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.now() });
    t.after(() => mock.timers.reset());
    for (let seed = 1, state = 1; seed <= 20; seed++) {
      const pick = (below) => (state = state * 48271 % 2147483647) % below;
      const [[ours, own], said] = [make(`${name} ${seed}`), []];
      const keys = times === any || times === untilFree ? ['bob', 'sue'] : ['bob'];
      for (let i = 0, last; i < 40; i++) {
        if (pick(4) === 0) {
          said.push(times(last)[pick(times(last).length)]);
          mock.timers.tick(said.at(-1));
          await server.call('DEBUG', 'ADVANCE', `${said.at(-1)}ms`);
        }
        const [call, key] = [calls[pick(calls.length)], keys[pick(keys.length)]];
        const answer = await call(ours, key);
        last = await call(own, key);
        said.push(`${key} ${JSON.stringify(last)}`);
        assert.deepEqual(answer, last, `seed ${seed}: ${said.join(', ')}, not ${JSON.stringify(answer)}`);
      }
    }
  });
}

test('while the server is unavailable, the fallback decides, and no response shows why', async () => {
  const away = (options) => connect(() => Promise.reject(new Error('READONLY app:bob')), { log() {}, ...options });
  const app = express().set('env', 'production');
  for (const [name, options] of Object.entries({ open: { failOpen: true }, closed: { failClosed: true }, local: { failLocal: 1 }, none: {} })) {
    const by = await away(options);
    app.use(`/${name}`, rateLimit({ store: expressStore(by, 'app'), limit: 2, windowMs: hour, validate: false, keyGenerator: () => 'bob' }), (req, res) => res.send('hello'));
    const asked = [new (fastifyStore(by, 'fastify'))({}), nestStorage(by, 'nest')].map((store) => (store.incr ? askFastify('incr') : askNest(0))(store, 'bob'));
    const said = (await Promise.allSettled(asked)).map(({ value, reason }) => value?.[0] ?? `${reason.status} ${reason.message}`);
    assert.deepEqual(said, { open: [0, 0], local: [1, 1] }[name] ?? Array(2).fill('503 no decision'), name);
  }
  const listener = app.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  mock.method(console, 'error', () => {}); // Express logs errors
  for (const [name, statuses] of Object.entries({ open: [200, 200, 200], closed: [503, 503, 503], local: [200, 200, 429], none: [503, 503, 503] })) {
    for (const status of statuses) {
      const response = await fetch(`http://127.0.0.1:${listener.address().port}/${name}`);
      assert.equal(response.status, status, name);
      assert.doesNotMatch(await response.text(), /READONLY|bob/);
    }
  }
  listener.close();
});

test('@fastify/rate-limit: a route counts for itself, and a limiter of a handler too', async () => {
  const app = createFastify();
  const store = fastifyStore(limits, 'routes');
  await app.register(fastifyRateLimit, { store, max: 2, timeWindow: hour, keyGenerator: () => 'bob' });
  const own = app.createRateLimit({ max: 3, timeWindow: hour });
  for (const url of ['/a', '/b']) app.get(url, { config: { rateLimit: { max: 1 } } }, async () => '');
  app.get('/c', async () => '').get('/d', async (req) => (await own(req)).remaining);
  const ask = async (url) => {
    const { statusCode, payload } = await app.inject(url);
    return payload > '' && statusCode === 200 ? Number(payload) : statusCode;
  };
  const answers = [];
  for (const url of ['/a', '/a', '/b', '/b', '/c', '/d', '/d']) answers.push(await ask(url));
  assert.deepEqual(answers, [200, 429, 200, 429, 200, 2, 429]);
  assert.throws(() => new store({ continueExceeding: true }), /continueExceeding/);
  await app.close();
  server.disconnect();
});
