// What a framework asks of a store, without requests: TestAdapters runs this file on a server in memory.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { mock, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fastifyRateLimit from '@fastify/rate-limit';
import LocalStore from '@fastify/rate-limit/store/LocalStore.js';
import { ThrottlerStorageService } from '@nestjs/throttler';
import { buildSync } from 'esbuild-wasm';
import { MemoryStore } from 'express-rate-limit';
import createFastify from 'fastify';
import { GothrottleStore } from 'gothrottle/express-rate-limit';
import { gothrottleStore } from 'gothrottle/fastify-rate-limit';
import { GothrottleStorage } from 'gothrottle/nestjs-throttler';
import { RateLimiterGothrottle } from 'gothrottle/rate-limiter-flexible';
import { Cluster, Redis } from 'ioredis';
import { RateLimiterMemory, RateLimiterUnion } from 'rate-limiter-flexible';
import { createClient, createCluster } from 'redis';

const server = new Redis(`redis://${process.env.ADDR}`, { maxRetriesPerRequest: 0 });
const send = (...words) => server.call(...words);
const timeout = 20_000; // machines may be slow
const hour = 3_600_000;
const expressStore = (options, Store = GothrottleStore) => {
  const store = new Store({ send, prefix: 'test', timeout, ...options });
  store.init({ windowMs: hour });
  return store;
};
const hits = async (store) => (await store.increment('bob')).totalHits;

// The adapters answer random calls as the frameworks' own stores do. The classes and rows have the differences, of README.md.
class OwnExpress extends MemoryStore {
  windowMs = hour;

  async decrement(key) { // of the last hit ends the window
    await super.decrement(key);
    if (this.current.get(key).totalHits === 0) await this.resetKey(key);
  }
}

class OwnFlexible extends RateLimiterMemory {
  consume(key, points) { // takes no points if it is denied
    return super.consume(key, points).catch(async (res) => {
      if (!this.blockDuration) res.remainingPoints = (await this.reward(key, points)).remainingPoints;
      throw res;
    });
  }

  async reward(key, points) { // gives back no more than is in use
    const used = (await this.get(key))?.consumedPoints ?? 0;
    const res = await super.reward(key, Math.min(points, used));
    if (used <= points) await this.delete(key);
    return res;
  }

  isBlocked(key) { return this._memoryStorage.get(this.getKey(key))?.consumedPoints > this.points; }
}

const strings = async (...words) => [await send(...words)].flat().map(String); // as some clients answer
const limits = { send: strings, timeout, points: 5, duration: 3600 };
const express = (verb) => async (store, key) => {
  const info = await store[verb](key);
  return info && [info.totalHits, info.resetTime - Date.now()];
};
const fastify = (verb) => (store, key) => new Promise((resolve, reject) => {
  store[verb](key, (err, res) => (err ? reject(err) : resolve([res.current, res.ttl])), hour, 5);
});
const nest = (block) => async (store, key) => { // the wait for one call differs, and so do the hits that a block leaves
  const { isBlocked, totalHits, timeToBlockExpire } = await store.increment(key, hour, 3, block, 'default');
  return isBlocked ? ['blocked', block && timeToBlockExpire] : [totalHits];
};
const told = (how) => (res) => {
  if (res instanceof Error) throw res;
  return res?.msBeforeNext === undefined ? res : [how, res.remainingPoints, res.consumedPoints, res.msBeforeNext];
};
const flexible = (verb, args = (n) => [n]) => async (store, key, n) => { // above points, consumedPoints differ
  const answer = await store[verb](key, ...args(n)).then(told('resolved'), told('rejected'));
  return Array.isArray(answer) ? answer.with(2, Math.min(answer[2], 5) + 0) : answer;
};
const forget = async (store, key) => { await store.delete(key); }; // a key may outlive what it counts
const any = () => [1, hour / 3, hour - 1, hour];
const untilFree = () => [100 * hour]; // while some units get free, a rate and a window differ
const blocking = (last) => (last?.[3] ? [Math.floor(last[3] / 3), last[3]] : untilFree());
const nests = (prefix) => [new GothrottleStorage({ ...limits, prefix }), new ThrottlerStorageService()];
const flexibles = (more) => (keyPrefix) => [RateLimiterGothrottle, OwnFlexible].map((C) => new C({ ...limits, keyPrefix, ...more }));
const table = { // the stores, the calls, and which times may pass after an answer
  'express-rate-limit': [(prefix) => [expressStore({ ...limits, prefix }), new OwnExpress()],
    ['increment', 'increment', 'decrement', 'get', 'resetKey'].map(express), any],
  '@fastify/rate-limit': [(prefix) => [new (gothrottleStore({ ...limits, prefix }))({}), new LocalStore()],
    ['incr', 'read'].map(fastify), any],
  '@nestjs/throttler': [nests, [nest(0)], untilFree],
  '@nestjs/throttler that blocks': [nests, [nest(2 * hour)], (last) => (last?.[1] ? [hour / 6, 2 * hour] : [hour])],
  'rate-limiter-flexible': [flexibles(), [...['consume', 'get', 'penalty', 'reward', 'delete'].map((verb) => flexible(verb)),
    flexible('set', (n) => [n % 5 + 1, 60])], untilFree],
  'rate-limiter-flexible that is told to block': [flexibles(), [flexible('consume'), flexible('get'), forget,
    flexible('block', (n) => [60 * n]), flexible('set', (n) => [9, 60 * n])], blocking],
  'rate-limiter-flexible that blocks': [flexibles({ blockDuration: 7200 }),
    [flexible('consume', (n) => [n % 5 + 1]), flexible('get')], blocking],
};

// Runs a test for some seeds, with a function that returns a number below its argument, in time that stands still.
const seeded = (name, run) => test(name, async (t) => {
  mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.now() });
  t.after(() => mock.timers.reset());
  for (let seed = 1, state = 1; seed <= 20; seed++) await run((below) => (state = state * 48271 % 2147483647) % below, seed);
});
const pass = async (ms) => {
  mock.timers.tick(ms);
  await server.call('DEBUG', 'ADVANCE', `${ms}ms`);
};

for (const [name, [make, calls, times]] of Object.entries(table)) {
  seeded(name, async (pick, seed) => {
    const [[ours, own], said] = [make(`${name} ${seed}`), []];
    const keys = times === any || times === untilFree ? ['bob', 'sue'] : ['bob'];
    for (let i = 0, last; i < 40; i++) {
      if (pick(4) === 0) {
        said.push(times(last)[pick(times(last).length)]);
        await pass(said.at(-1));
      }
      const [call, key, n] = [calls[pick(calls.length)], keys[pick(keys.length)], 1 + pick(6)];
      const answer = await call(ours, key, n);
      last = await call(own, key, n);
      if (last?.length === 4 && !(times === blocking && own.isBlocked(key))) [answer, last].map((a) => a.pop()); // the wait differs
      said.push(`${key} ${n} ${JSON.stringify(last)}`);
      assert.deepEqual(answer, last, `seed ${seed}: ${said.join(', ')}, not ${JSON.stringify(answer)}`);
    }
  });
}

seeded('rate-limiter-flexible: get() tells what consume() tells', async (pick, seed) => {
  const points = 2 + seed % 6;
  const limiter = new RateLimiterGothrottle({ ...limits, points, keyPrefix: `get ${seed}` });
  for (let i = 0; i < 20; i++) {
    await limiter[['penalty', 'reward'][pick(2)]]('bob', 1 + pick(points));
    await pass(pick(hour));
    const seen = told('resolved')(await limiter.get('bob'));
    const [how, ...taken] = await limiter.consume('bob').then(told('resolved'), told('rejected'));
    if (how === 'rejected') {
      assert.deepEqual(seen.slice(1), taken, `seed ${seed}`);
      await pass(taken[2] - 1);
      await assert.rejects(limiter.consume('bob'), { msBeforeNext: 1 });
      await pass(1);
      await limiter.consume('bob');
    } else {
      const free = ['resolved', taken[0] + 1, taken[1] - 1, Math.ceil(taken[2] - hour / points)];
      assert.deepEqual(seen, taken[1] === 1 ? null : free, `seed ${seed}`);
    }
  }
});

function bundled() { // by esbuild, and run in a folder without packages
  const names = ['', '/express-rate-limit', '/fastify-rate-limit', '/nestjs-throttler', '/rate-limiter-flexible'];
  const contents = names.map((name) => `export * from 'gothrottle${name}';`).join('');
  const stdin = { contents, resolveDir: import.meta.dirname };
  const { outputFiles: [{ text }] } = buildSync({ stdin, bundle: true, platform: 'node', write: false });
  const module = {};
  new Function('module', 'require', '__dirname', text)(module, createRequire('/'), '/');
  return module.exports;
}

test('without the module', async () => {
  const bare = new Redis(`redis://${process.env.BARE}`, { maxRetriesPerRequest: 0, enableOfflineQueue: false, socketTimeout: 2000 });
  await once(bare, 'ready');
  const { mock: sent } = mock.method(bare, 'call');
  const texts = () => sent.calls.filter(({ arguments: [name] }) => name === 'EVAL').length;
  const store = expressStore({ client: bare, send: undefined, script: true }, bundled().GothrottleStore);
  assert.deepEqual((await Promise.all(Array.from({ length: 9 }, () => hits(store)))).sort(), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.equal(texts(), 1);
  await store.resetKey('bob');
  assert.equal(await store.get('bob'), undefined);
  const limits = await bundled().connect(`redis://${process.env.BARE}`, { timeout, script: true });
  assert.equal((await limits.rate('bundled', { perMinute: 5 }).allow('bob')).remaining, 4);
  await limits.close();
  const script = readFileSync(process.env.SCRIPT, 'utf8'); // the package has the same: it is known
  const flexible = new RateLimiterGothrottle({ client: bare, timeout, script, keyPrefix: 'login', points: 1, duration: 60 });
  await flexible.consume('bob');
  await assert.rejects(flexible.consume('bob'), { remainingPoints: 0 });
  await assert.rejects(hits(expressStore({ client: bare, send: undefined, log() {} })), ({ cause }) => /unknown command/.test(cause.message));
  assert.equal(texts(), 1);
  assert.throws(() => expressStore({ client: bare, script: 'gothrottle.lua' }), /script is true/);
  bare.disconnect();
});

test('nodes of a cluster know the script, and answer, each for itself', async () => {
  const known = new Set();
  const node = async (command, which, count, key) => {
    const name = key.slice(-1);
    if (name === 'z') return new Promise(() => {});
    await setImmediate();
    if (command === 'EVAL') known.add(name);
    else if (!known.has(name)) throw new Error('NOSCRIPT No matching script.');
    return [0, 1, 0, -1, 1];
  };
  const [store, hasty] = [timeout, 50].map((ms) => expressStore({ send: node, script: true, timeout: ms, log() {} }));
  await Promise.all(['a', 'b', 'c', 'd'].map((key) => store.increment(key)));
  await assert.rejects(hasty.increment('z'), ({ cause }) => /no reply/.test(cause.message));
  await assert.rejects(hasty.increment('z'), ({ cause }) => /no call was sent/.test(cause.message));
  await store.increment('a');
});

test('a limiter has a prefix and a client', () => {
  for (const Store of [GothrottleStore, gothrottleStore, GothrottleStorage, RateLimiterGothrottle]) {
    const make = Store === gothrottleStore ? Store : (options) => new Store(options);
    assert.throws(() => make({ send, points: 5, duration: 60 }), /prefix is missing/);
    assert.throws(() => make({ prefix: 'a', keyPrefix: 'a', points: 5, duration: 60 }), /client is missing/);
  }
});

test('errors', async () => {
  const lines = [];
  const log = (line) => lines.push(line);
  for (const [what, status, line] of [
    [() => new Promise(() => {}), 503, /no reply within 20 ms/],
    [() => { throw new Error('ECONNREFUSED'); }, 503, /ECONNREFUSED/],
    ...['OOM command not allowed', 'ERR max number of clients reached'].map((text) => [text, 503, /no decision: (OOM|ERR)/]),
    ...[undefined, null, ['QUEUED']].map((reply) => [() => reply, 503, /send returned/]), // such as of a send without return
    ['WRONGTYPE Operation against a key', 500, /WRONGTYPE/], // a fault of the program
    ['ERR max_burst must be between 0 and 999999999999', 500, /ERR max_burst/],
    ["ERR unknown command 'GO.QUOTA'", 500, /load the module gothrottle/],
  ]) {
    const answer = typeof what === 'string' ? () => Promise.reject(new Error(what)) : what;
    const options = { send: answer, timeout: 20, log, prefix: 'errors' };
    const closed = expressStore(options);
    for (let i = 0; i < 2; i++) { // frameworks send the message to clients
      await assert.rejects(hits(closed), (err) => err.status === status && err.message === 'no decision' && err.cause instanceof Error);
    }
    await closed.decrement('bob'); // express-rate-limit 7 would end the process on an error
    assert.match(lines.join(), line);
    assert.equal(lines.splice(0).length, 1);
    options.failOpen = true;
    const open = [expressStore(options).increment('bob'), new GothrottleStorage(options).increment('bob', hour, 5, 0, 'default'),
      fastify('incr')(new (gothrottleStore(options))({}), 'bob')];
    const opened = (await Promise.allSettled(open)).map(({ value }) => value?.totalHits ?? value?.isBlocked ?? value?.[0]);
    assert.deepEqual(opened, status === 503 ? [1, 0, 0] : [undefined, undefined, undefined], what);
    lines.length = 0;
  }
  const answers = [() => { throw new Error('away'); }, send, send];
  const store = expressStore({ send: (...words) => answers.shift()(...words), log, failOpen: true });
  assert.deepEqual([await hits(store), await hits(store), await hits(store)], [1, 1, 2]);
  assert.match(lines.pop(), /decides again/);
});

test('after a call without a reply one call in 3 s tries, until a reply comes', async () => {
  const calls = []; // that wait
  const sent = () => new Promise((resolve, reject) => { calls.push({ resolve, reject }); });
  const client = { options: { disableOfflineQueue: true, pingInterval: 1, socket: { socketTimeout: 2, reconnectStrategy: Date } } };
  const options = { client: { ...client, sendCommand: sent }, send: undefined, timeout: 20, failOpen: true, log() {} };
  const [page, login] = [expressStore(options), expressStore({ ...options, prefix: 'login' })];
  const crowd = () => Promise.all([hits(page), hits(page), hits(login)]);
  mock.timers.enable({ apis: ['Date'], now: Date.now() });
  const reply = [0, 9, 7, -1, 1000];
  for (const [act, waiting] of [
    [() => {}, 3], // all are sent before the first has no reply
    [() => {}, 3],
    [() => mock.timers.tick(2999), 3],
    [() => mock.timers.tick(1), 4],
    [() => mock.timers.tick(2999), 4],
    [() => mock.timers.tick(1), 5],
    [() => calls[0].resolve(reply), 8], // comes late
    [() => calls[1].reject(new Error('Socket closed unexpectedly')), 11], // the next call has a new connection
    [() => calls[2].reject(new Error('OOM command not allowed')), 14],
  ]) {
    act();
    await setImmediate();
    assert.deepEqual(await crowd(), [1, 1, 1]);
    assert.equal(calls.length, waiting, act);
  }
  mock.timers.reset();
});

test('a client that would send twice, or wait without end, is refused', () => {
  const ioredis = { maxRetriesPerRequest: 0, enableOfflineQueue: false, socketTimeout: 2000, lazyConnect: true };
  const socket = { socketTimeout: 2000, reconnectStrategy: () => 50 };
  const redis = { disableOfflineQueue: true, pingInterval: 1000, socket };
  for (const [make, good, bad] of [
    [(options) => new Redis(options), ioredis, [{ maxRetriesPerRequest: 20 }, { enableOfflineQueue: true },
      { socketTimeout: undefined }, { socketTimeout: 3000 }]],
    [createClient, redis, [{ disableOfflineQueue: false }, { pingInterval: undefined }, { pingInterval: 2000 },
      { socket: { ...socket, socketTimeout: 3000 } }, { socket: { socketTimeout: 2000 } }, { socket: undefined }]],
  ]) {
    const store = (change) => expressStore({ send: undefined, client: make({ ...good, ...change }) });
    store({});
    for (const change of bad) assert.throws(() => store(change), new RegExp(`client needs.*${Object.keys(change)[0]}`));
  }
  for (const cluster of [new Cluster([], { lazyConnect: true }), createCluster({ rootNodes: [] })]) {
    assert.throws(() => expressStore({ send: undefined, client: cluster }), /client needs.*ocketTimeout/);
  }
});

test('@fastify/rate-limit: a route counts for itself, and a limiter of a handler too', async () => {
  const app = createFastify();
  const store = gothrottleStore({ ...limits, prefix: 'routes' });
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
});

test('rate-limiter-flexible: customDuration, the prefix that was given, and an insurance that also blocks', async () => {
  const limiter = new RateLimiterGothrottle({ ...limits, keyPrefix: 'again' });
  assert.ok((await limiter.penalty('sue', 5, { customDuration: 60 })).msBeforeNext <= 60_000);
  assert.deepEqual(Object.keys(await new RateLimiterUnion(limiter).consume('ann')), ['again']);
  const away = { ...limits, keyPrefix: 'away', send: () => Promise.reject(new Error('away')), log() {} };
  const insured = new RateLimiterGothrottle({ ...away, insuranceLimiter: new RateLimiterMemory(away) });
  assert.equal((await insured.consume('bob')).remainingPoints, 4);
  await insured.block('bob', 60);
  const { msBeforeNext } = await insured.consume('bob').catch((res) => res);
  assert.ok(msBeforeNext > 50_000 && msBeforeNext <= 60_000, `${msBeforeNext}`);
  await insured.delete('bob');
  assert.equal((await insured.consume('bob')).remainingPoints, 4);
});

// A service that moves from a framework's own store to an adapter finds the keys of that store, of another type.
test('the keys are not those of other stores', async () => {
  const [, keys] = await server.scan(0);
  assert.ok(keys.length > 0);
  assert.deepEqual(keys.filter((key) => !key.startsWith('gothrottle:')), []);
});
