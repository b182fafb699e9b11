// What a framework asks of a store, without requests: TestAdapters runs this file on a server in memory.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mock, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { GothrottleStore } from 'gothrottle-adapters/express-rate-limit';
import { gothrottleStore } from 'gothrottle-adapters/fastify-rate-limit';
import { GothrottleStorage } from 'gothrottle-adapters/nestjs-throttler';
import { RateLimiterGothrottle } from 'gothrottle-adapters/rate-limiter-flexible';
import { Cluster, Redis } from 'ioredis';
import { RateLimiterMemory, RateLimiterUnion } from 'rate-limiter-flexible';
import { createClient, createCluster } from 'redis';

const server = new Redis(`redis://${process.env.ADDR}`, { maxRetriesPerRequest: 0 });
const send = (...words) => server.call(...words);
const timeout = 20_000; // machines may be slow
const hour = 3_600_000;
const expressStore = (options) => {
  const store = new GothrottleStore({ send, prefix: 'test', timeout, ...options });
  store.init({ windowMs: hour });
  return store;
};
const hits = async (store, verb = 'increment') => (await store[verb]('bob')).totalHits;

test('express-rate-limit', async () => {
  const store = expressStore();
  assert.deepEqual([await hits(store), await hits(store), await hits(store, 'get')], [1, 2, 2]);
  const { resetTime } = await store.get('bob');
  assert.ok(resetTime > Date.now() && resetTime <= Date.now() + hour + 1000, resetTime);
  await store.decrement('bob');
  assert.equal(await hits(store), 2);
  await store.resetKey('bob');
  assert.deepEqual([await hits(store, 'get'), await hits(store)], [0, 1]);
  assert.equal(await server.exists(`${store.prefix}bob`), 1);
});

test('without the module', async () => {
  const bare = new Redis(`redis://${process.env.BARE}`, { maxRetriesPerRequest: 0, enableOfflineQueue: false, socketTimeout: 2000 });
  await once(bare, 'ready');
  const { mock: sent } = mock.method(bare, 'call');
  const texts = () => sent.calls.filter(({ arguments: [name] }) => name === 'EVAL').length;
  const store = expressStore({ client: bare, send: undefined, script: true });
  assert.deepEqual((await Promise.all(Array.from({ length: 9 }, () => hits(store)))).sort(), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.equal(texts(), 1);
  await store.resetKey('bob');
  assert.equal(await hits(store, 'get'), 0);
  const script = readFileSync(process.env.SCRIPT, 'utf8'); // the package has the same: it is known
  const flexible = new RateLimiterGothrottle({ client: bare, timeout, script, keyPrefix: 'login', points: 1, duration: 60 });
  await flexible.consume('bob');
  await assert.rejects(flexible.consume('bob'), { remainingPoints: 0 });
  await assert.rejects(hits(expressStore({ client: bare, send: undefined })), /unknown command/);
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
  const store = expressStore({ send: node, script: true, timeout: 50, log: () => {} });
  await Promise.all(['a', 'b', 'c', 'd'].map((key) => store.increment(key)));
  await assert.rejects(store.increment('z'), ({ cause }) => /no reply/.test(cause.message));
  await assert.rejects(store.increment('z'), ({ cause }) => /no call was sent/.test(cause.message));
  await store.increment('a');
});

test('limiters do not share counters by accident', async () => {
  const page = expressStore({ prefix: 'page' });
  const login = expressStore({ prefix: 'login' });
  assert.deepEqual([await hits(page), await hits(page), await hits(login)], [1, 2, 1]);
  for (const Store of [GothrottleStore, gothrottleStore, GothrottleStorage, RateLimiterGothrottle]) {
    const make = Store === gothrottleStore ? Store : (options) => new Store(options);
    assert.throws(() => make({ send, points: 5, duration: 60 }), /prefix is missing/);
    assert.throws(() => make({ prefix: 'a', keyPrefix: 'a', points: 5, duration: 60 }), /client is missing/);
  }
});

test('a server that cannot decide', async () => {
  const lines = [];
  let answer = () => new Promise(() => {}); // no reply
  const options = { send: (...words) => answer(...words), timeout: 20, log: (line) => lines.push(line) };
  const open = expressStore({ ...options, failOpen: true });
  assert.equal(await hits(open), 1);
  answer = () => { throw new Error('ECONNREFUSED'); };
  assert.equal(await hits(open), 1);
  answer = () => Promise.reject(new Error('OOM command not allowed'));
  assert.equal(await hits(open), 1);
  // The error says nothing of the server: frameworks send its text to clients.
  const closed = expressStore(options);
  await assert.rejects(hits(closed), { status: 503, message: 'no decision' });
  await closed.decrement('bob'); // express-rate-limit 7 would end the process on an error
  const nest = new GothrottleStorage({ ...options, prefix: 'test', failOpen: true });
  assert.equal((await nest.increment('bob', hour, 5, 0, 'default')).isBlocked, false);
  const Fastify = gothrottleStore({ ...options, prefix: 'test', failOpen: true });
  assert.equal((await new Fastify({}).count('bob', hour, 1)).current, 0);
  mock.timers.enable({ apis: ['Date'], now: Date.now() + 3000 }); // the call without a reply began a pause
  answer = send;
  assert.equal(await hits(open), 2);
  mock.timers.reset();
  assert.equal(lines.filter((line) => /no decision/.test(line)).length, 4, lines); // once for each limiter
  assert.match(lines.at(-1), /decides again/);
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
    assert.throws(() => expressStore({ send: undefined, client: cluster }), /a cluster needs send/);
  }
});

test('faults of the program are errors, even if requests go on while the server is away', async () => {
  const lines = [];
  const log = (line) => lines.push(line);
  const say = (text) => expressStore({ send: () => Promise.reject(new Error(text)), failOpen: true, log });
  await assert.rejects(hits(say('WRONGTYPE Operation against a key')), /^Error: WRONGTYPE/);
  await assert.rejects(hits(say('ERR max_burst must be between 0 and 999999999999')), /^Error: ERR max_burst/);
  assert.equal(await hits(say('ERR max number of clients reached')), 1);
  await assert.rejects(hits(say("ERR unknown command 'GO.QUOTA'")), /unknown command/);
  assert.match(lines.join(), /load the module gothrottle/);
  for (const reply of [undefined, null, 'QUEUED']) { // such as of a send without return
    await assert.rejects(hits(expressStore({ send: () => reply, log })), { status: 503 });
    assert.match(lines.at(-1), /send returned/);
  }
});

test('a client may make strings of integers', async () => {
  const strings = { send: async (...words) => (await send(...words)).map(String), prefix: 'strings', timeout };
  const storage = new GothrottleStorage(strings);
  assert.equal((await storage.increment('bob', hour, 1, hour, 'default')).isBlocked, false);
  assert.equal((await storage.increment('bob', hour, 1, hour, 'default')).isBlocked, true);
  assert.ok((await expressStore(strings).increment('bob')).resetTime > Date.now());
});

test('@fastify/rate-limit', async () => {
  const Store = gothrottleStore({ send, timeout, prefix: 'test' });
  const root = new Store({});
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
  const minute = root.child({ max: 2, timeWindow: 60_000, routeInfo: {} }); // as app.createRateLimit() makes it
  assert.equal((await ask(minute, 'incr')).current, 1);
  assert.equal((await ask(root.child({ max: 9, timeWindow: hour, routeInfo: {} }), 'incr')).current, 1);
  assert.throws(() => root.child({ continueExceeding: true }), /continueExceeding/);
});

test('@nestjs/throttler', async () => {
  const storage = new GothrottleStorage({ send, timeout, prefix: 'test' });
  const hit = () => storage.increment('bob', hour, 2, 2 * hour, 'default');
  assert.deepEqual(await hit(), { totalHits: 1, timeToExpire: 1800, isBlocked: false, timeToBlockExpire: 0 });
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
  const limiter = new Limiter({ send, timeout, points: 5, duration: 3600, keyPrefix: 'test' });
  const replies = [];
  for (const [verb, ...args] of verbs[name]) {
    const tell = (how) => (res) => {
      if (res instanceof Error) throw res;
      replies.push([verb, how, res?.consumedPoints === undefined ? res : Math.min(res.consumedPoints, 5)]);
    };
    await limiter[verb](name, ...args).then(tell('resolved'), tell('rejected'));
  }
  return replies;
}

for (const name of Object.keys(verbs)) {
  test(`rate-limiter-flexible: ${name}`, async () => {
    assert.deepEqual(await life(RateLimiterGothrottle, name), await life(RateLimiterMemory, name));
  });
}

test('rate-limiter-flexible: a block has an end of its own, and nothing is in use then', async () => {
  const limiter = new RateLimiterGothrottle({ send, timeout, points: 5, duration: 3600, keyPrefix: 'again' });
  for (const seconds of [60, 600, 60]) {
    await limiter.block('bob', seconds);
    assert.equal(Math.ceil((await limiter.get('bob')).msBeforeNext / 10_000) * 10, seconds);
    const reset = (await send('GO.THROTTLE_RO', limiter.getKey('bob'), 4, 5, 3600, 0))[4];
    assert.ok(reset <= seconds, `${reset}`);
  }
  const { msBeforeNext } = await limiter.penalty('sue', 5, { customDuration: 60 });
  assert.ok(msBeforeNext <= 60_000, `${msBeforeNext}`);
  assert.deepEqual(Object.keys(await new RateLimiterUnion(limiter).consume('ann')), ['again']); // the name that was given
});

test('rate-limiter-flexible: the insurance also blocks', async () => {
  const limits = { points: 5, duration: 3600, keyPrefix: 'away' };
  const away = () => Promise.reject(new Error('away'));
  const insuranceLimiter = new RateLimiterMemory(limits);
  const limiter = new RateLimiterGothrottle({ ...limits, send: away, log() {}, insuranceLimiter });
  assert.equal((await limiter.consume('bob')).remainingPoints, 4);
  await limiter.block('bob', 60);
  const denial = await limiter.consume('bob').catch((res) => res);
  assert.ok(denial.msBeforeNext > 50_000 && denial.msBeforeNext <= 60_000, denial.msBeforeNext);
  await limiter.delete('bob');
  assert.equal((await limiter.consume('bob')).remainingPoints, 4);
});

// A service that moves from a framework's own store to an adapter finds the keys of that store, of another type.
test('the keys are not those of other stores', async () => {
  const [, keys] = await server.scan(0);
  assert.ok(keys.length > 0);
  assert.deepEqual(keys.filter((key) => !key.startsWith('gothrottle:')), []);
});
