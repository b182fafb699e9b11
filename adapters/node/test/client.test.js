// Connections, outages and libraries, on servers in memory: TestAdapters runs this file.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, mock, test } from 'node:test';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { buildSync } from 'esbuild-wasm';
import { connect, Undecided } from 'gothrottle';

const require = createRequire(import.meta.url);
const { ADDR, BARE, CA, CLUSTER, FAULTS, SCRIPT, SENTINEL, SERVERS, TLS } = process.env;
const timeout = 20_000; // machines may be slow
const url = `redis://${ADDR}`;
const control = await require('redis').createClient({ url }).connect(); // DEBUG frees it of faults
await control.sendCommand(['DEBUG', 'FAULT', 'NONE']);
after(() => control.destroy());
const until = async (what, f) => {
  let why;
  for (const end = Date.now() + 30_000; Date.now() < end; await sleep(20)) {
    try {
      if (await f()) return;
    } catch (err) {
      why = err.cause ?? err;
    }
  }
  assert.fail(`not within 30 s: ${what}: ${why}`);
};
const quiet = { log() {} };

const socket = { connectTimeout: timeout, socketTimeout: 2000, reconnectStrategy: () => 50 };
const nodeRedis = { disableOfflineQueue: true, pingInterval: 1000, socket };
const ioredis = { enableOfflineQueue: false, maxRetriesPerRequest: 0, socketTimeout: 2000, keyPrefix: 'ignored:' };
const at = (addr) => ({ host: addr.split(':')[0], port: Number(addr.split(':')[1]) });
const clients = {
  redis: {
    single: (lib, addr) => lib.createClient({ url: `redis://${addr}`, ...nodeRedis }).connect(),
    RESP3: (lib, addr) => lib.createClient({ url: `redis://${addr}`, RESP: 3, ...nodeRedis }).connect(),
    TLS: (lib, addr) => lib.createClient({ url: `rediss://${addr}`, ...nodeRedis, socket: { ...socket, tls: true, ca: readFileSync(CA) } }).connect(),
    async cluster(lib, addr) {
      const cluster = lib.createCluster({ rootNodes: [{ url: `redis://${addr}` }], defaults: nodeRedis, maxCommandRedirections: 0 });
      await cluster.connect();
      return cluster;
    },
    async Sentinel(lib, addr) { // since version 5
      const sentinel = await lib.createSentinel?.({ name: 'main', sentinelRootNodes: [at(addr)], nodeClientOptions: nodeRedis }).connect();
      return sentinel && Object.assign((...words) => sentinel.sendCommand(false, words), { destroy: () => sentinel.close() });
    },
  },
  ioredis: {
    single: (lib, addr) => new lib.Redis({ ...at(addr), ...ioredis }),
    TLS: (lib, addr) => new lib.Redis({ ...at(addr), ...ioredis, tls: { ca: readFileSync(CA) } }),
    cluster: (lib, addr) => new lib.Cluster([`redis://${addr}`],
      { enableOfflineQueue: false, retryDelayOnFailover: 0, redisOptions: ioredis, maxRedirections: 0 }),
    Sentinel: (lib, addr) => new lib.Redis({ name: 'main', sentinels: [at(addr)], ...ioredis }),
  },
};
const made = async (name, way, addr) => {
  const client = await clients[name.replace(/\d/, '')][way]?.(require(name), addr);
  if (client && name.startsWith('io')) await once(client, 'ready');
  return client;
};

// Random options and calls on each server that fails: a call is sent once, ends in time, says what it knows or what the fallback
// says, and leaves nothing taken that nobody has. Then the server decides again.
const calls = {
  allow: ({ daily }) => daily.allow('k'),
  wait: ({ daily }) => daily.wait('k', { maxWait: 0 }),
  all: ({ by, daily, more }) => by.all(daily.part('k'), more.part('k')),
  async hold({ daily }) {
    const hold = await daily.hold('k', 1, { ttl: '1h' });
    await (hold.source === 'server' ? hold.settle(1) : hold.release());
    return hold;
  },
  async lease({ jobs }) {
    const lease = await jobs.lease('k');
    await lease.release();
    return lease;
  },
};
const fallbacks = { 'failed-open': { failOpen: true }, 'failed-closed': { failClosed: true }, 'failed-local': { failLocal: 1 }, none: {} };
const statuses = { 503: 'none', 500: 'fault' };

async function failing({ name, debug, answer, taken }, addr, pick) {
  const one = (list) => list[pick(list.length)];
  const [call, fallback, library] = [one(Object.keys(calls)), one(Object.keys(fallbacks)), one(['url', 'redis5', 'redis', 'ioredis'])];
  const options = { script: one([true, false]), coalesce: one([true, false]), rememberDenials: one([true, false]), ...fallbacks[fallback] };
  const about = `${name}: ${call} by ${library}, ${JSON.stringify(options)}`;
  const lines = [];
  const client = library === 'url' ? `redis://${addr}` : await made(library, 'single', addr);
  const by = await connect(client, { timeout: 1000, log: (line) => lines.push(line), ...options });
  const faults = await require('redis').createClient({ url: `redis://${addr}`, socket: { connectTimeout: timeout } }).connect();
  const set = (words) => faults.sendCommand(['DEBUG', ...words.split(' ')]);
  const limiters = { by, daily: by.quota('faults', { perDay: 100 }), more: by.window('more', { perDay: 100 }), jobs: by.slots('jobs', { limit: 1, ttl: '1h' }) };
  const left = async () => {
    let remaining;
    await until(`the server decides: ${about}`, async () => { remaining = (await limiters.daily.peek('k')).remaining; return true; });
    return remaining;
  };
  await until('the script is known', async () => (await limiters.daily.allow('k')).source === 'server');
  const before = await left();
  const asked = performance.now();
  await set(debug);
  const began = performance.now();
  const said = await calls[call](limiters).then(({ source, allowed }) => `${source} ${allowed}`, ({ status }) => statuses[status]);
  const [took, byScript] = [performance.now() - began, options.script && /NOMODULE/.test(debug)]; // which runs all the same
  const unavailable = fallback === 'none' ? 'none' : `${fallback} ${fallback !== 'failed-closed'}`;
  const may = { decided: ['server true'], unavailable: [unavailable], fault: ['fault'], either: ['server true', unavailable] }[byScript ? 'decided' : answer];
  if (performance.now() - asked > 2000) may.push('server true'); // the machine was busy for longer than the fault lasts
  assert.ok(may.includes(said), `${about}: ${said}, not ${may}`);
  assert.ok(took < timeout, `${about}: ${took} ms`);
  for (let n = 0; n < 3 && answer === 'unavailable'; n++) await limiters.daily.peek('k').catch(() => {});
  assert.ok(lines.length <= 3, `${about}: ${lines}`); // an outage may have come before
  if (said === unavailable) assert.match(lines.join(), /no decision/);
  await set('FAULT NONE');
  if (/MUTE/.test(debug)) await set('CUT'); // no connection goes on after a reply that got lost
  const after = await left();
  if (taken[0] < taken[1]) await set('ADVANCE 2h'); // the call may have run after it was given back
  const holds = async (ask) => {
    const held = await ask();
    await held.release();
    return held.allowed && held.source === 'server';
  };
  await until(`nothing is held: ${about}`, async () => holds(async () => limiters.daily.hold('k', await left())));
  await until(`no slot is taken: ${about}`, () => holds(() => limiters.jobs.lease('k')));
  const units = before - await left();
  const [least, most] = byScript ? [1, 1] : taken;
  const counts = call !== 'lease' && (call !== 'hold' || said === 'server true');
  assert.ok(units >= (counts ? least : 0) && units <= (counts ? most : 0) && after >= before - units, `${about}: ${units} units were taken`);
  await by.close();
  if (library !== 'url') (client.destroy ?? client.disconnect).call(client);
  faults.destroy();
}

test('faults', { concurrency: true }, async (t) => {
  const rows = JSON.parse(readFileSync(FAULTS, 'utf8'));
  const addrs = SERVERS.split(' ');
  await Promise.all(rows.map((row, i) => t.test(row.name, async () => {
    let state = i + 1;
    const pick = (below) => (state = state * 48271 % 2147483647) % below;
    for (let n = 0; n < 3; n++) await failing(row, addrs[i], pick);
  })));
});

test('while the server cannot decide, the fallback does', async () => {
  const lines = [];
  const failing = await connect(() => Promise.reject(new Error('READONLY')), { log: (line) => lines.push(line), failClosed: true });
  const five = { perMinute: 5 };
  const closed = await failing.rate('a', five).allow('bob');
  assert.deepEqual([closed.allowed, closed.source, closed.status, closed.headers], [false, 'failed-closed', 503, { 'Retry-After': '1' }]);
  assert.match(closed.cause.message, /READONLY/);
  const open = await failing.rate('a', { ...five, failOpen: true }).allow('bob');
  assert.deepEqual([open.allowed, open.source, open.status, open.headers], [true, 'failed-open', 200, {}]);
  const local = failing.rate('a', { ...five, failLocal: 0.4 });
  const said = await Promise.all(Array.from({ length: 3 }, () => local.allow('bob')));
  assert.deepEqual(said.map(({ allowed, source, limit }) => [allowed, source, limit]),
    [true, true, false].map((allowed) => [allowed, 'failed-local', 2]));
  const { each, allowed } = await failing.all(local.part('sue'), local.part('ann', 3));
  assert.deepEqual([allowed, each.length], [false, 2]);
  const lease = await failing.slots('a', { limit: 1, ttl: '1s', failOpen: true }).lease('bob');
  assert.equal(lease.allowed, true);
  await lease.release();
  await assert.rejects(local.peek('bob'), (err) => err instanceof Undecided && err.status === 503 && err.message === 'no decision');
  assert.deepEqual(lines, ['gothrottle: no decision: READONLY']);
  const refused = await connect(() => Promise.reject(Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' })), { log: (line) => lines.push(line) });
  await assert.rejects(refused.rate('a', five).allow('bob'), { status: 503 });
  assert.match(lines[1], /no decision: ECONNREFUSED/);
  await failing.close();
});

test('one silent node of a cluster is one outage in the log', async (t) => {
  mock.timers.enable({ apis: ['Date'], now: Date.now() });
  t.after(() => mock.timers.reset());
  const lines = [];
  let silent = true;
  const node = (name, key) => (silent && key === 'a:k1' ? new Promise(() => {}) : name === 'COMMAND' ? [] : [0, 5, 4, -1, 1]);
  const by = (await connect(node, { timeout: 20, failOpen: true, log: (line) => lines.push(line) })).rate('a', { perMinute: 5 });
  const ask = async () => {
    for (const key of ['k1', 'k2', 'k3']) await by.allow(key);
    mock.timers.tick(1000);
  };
  for (let i = 0; i < 9; i++) await ask();
  silent = false;
  for (let i = 0; i < 9; i++) await ask();
  assert.deepEqual(lines, ['gothrottle: no decision: no reply within 20 ms', 'gothrottle: the server decides again']);
});

// Each library, by module and script, with several keys.
for (const name of ['redis', 'redis4', 'redis5', 'ioredis', 'ioredis5']) {
  const ways = { single: ADDR, RESP3: ADDR, TLS, cluster: CLUSTER, Sentinel: SENTINEL, 'single by script': BARE, 'cluster by script': CLUSTER };
  for (const [way, addr] of Object.entries(ways)) {
    test(`${name}, ${way}`, async (t) => {
      const client = await made(name, way.split(' ')[0], addr);
      if (!client) return t.skip('there is none');
      const by = await connect(client, { timeout, script: / script/.test(way), prefix: `${name} ${way} ` });
      const login = by.rate('login', { perMinute: 5, burst: 3 });
      await Promise.all(['a', 'b', 'c', 'd', 'e', 'f', '1', '2', '3'].map(async (key) => {
        const all = await Promise.all([1, 2, 3, 4].map(() => login.allow(key)));
        assert.deepEqual(all.map(({ allowed, remaining }) => [allowed, remaining]), [[true, 2], [true, 0], [true, 0], [false, 0]]);
      }));
      const hold = await login.hold('h', 2);
      assert.deepEqual([await hold.settle(1), (await login.peek('h')).remaining], ['counted', 2]);
      const daily = by.quota('day', { perDay: 2 });
      const { each } = await by.all(login.part('{g}'), daily.part('{g}', 2));
      assert.deepEqual(each.map(({ remaining }) => remaining), [2, 0]);
      const denied = await by.all(login.part('{g}'), daily.part('{g}'));
      assert.deepEqual([denied.allowed, denied.decider, (await login.peek('{g}')).remaining], [false, 1, 2]);
      await daily.reset('{g}');
      assert.equal((await daily.peek('{g}')).remaining, 2);
      await by.close();
      await (client.destroy ?? client.disconnect).call(client);
      return undefined;
    });
  }
}

// Requests and replies get lost. What is counted has been charged once; what is unknown, once at most.
const losing = async (lost) => connect(async (...words) => {
  const how = lost(); // or how many ms it takes
  if (how > 1) await sleep(how);
  else if (how) throw new Error('the request got lost');
  const reply = await control.sendCommand(words);
  if (lost()) throw new Error('the reply got lost');
  return reply;
}, { timeout, log() {} });

test('random losses: a settlement is charged once', async () => {
  await Promise.all(Array.from({ length: 20 }, async (_, seed) => {
    let [state, loses] = [seed + 1, 0]; // so many of 10
    const pick = (below) => (state = state * 48271 % 2147483647) % below;
    const by = await losing(() => pick(10) < loses);
    const tokens = by.window('losses', { limit: 10_000, per: '1d' });
    const sums = { counted: 0, unknown: 0, failed: 0 };
    loses = seed % 4 || 9;
    const holds = await Promise.all(Array.from({ length: 10 }, () => tokens.hold(`${seed}`, 5, { ttl: loses === 9 ? 500 : 4000 }).catch(() => {})));
    setTimeout(() => { loses = Math.min(loses, 3); }, 600);
    await Promise.all(holds.filter(Boolean).map(async (hold) => {
      const cost = pick(60);
      sums[await hold.settle(cost).catch(() => 'failed')] += cost;
    }));
    loses = 0;
    const used = 10_000 - (await tokens.peek(`${seed}`)).remaining;
    assert.ok(used >= sums.counted && used <= sums.counted + sums.unknown, `seed ${seed}: ${used} units, ${JSON.stringify(sums)}`);
    if (seed % 4) assert.equal(sums.unknown, 0, `seed ${seed}`);
    await by.close();
  }));
});

test('a settlement whose reply got lost is charged once, and after the hold has lapsed nobody knows', async () => {
  for (const [lost, said] of [[[0, 1], 'counted'], [[0, 1, 1, 1, 1], 'counted'], [[0, 1, ...Array(30).fill(1)], 'unknown'],
    [[0, 1, 500], 'unknown']]) {
    const queue = [];
    const by = await losing(() => queue.shift());
    const tokens = by.quota(`lost ${lost.length}`, { perDay: 100 });
    const hold = await tokens.hold('bob', 40, { ttl: 500 });
    queue.push(...lost);
    assert.equal(await hold.settle(30), said);
    queue.length = 0;
    assert.equal((await tokens.peek('bob')).remaining, 70);
    await by.close();
  }
});

test('what is no decision', async () => {
  const lines = [];
  for (const [what, status, line] of [
    [() => new Promise(() => {}), 503, /no reply within 20 ms/],
    [() => { throw new Error('ECONNREFUSED'); }, 503, /ECONNREFUSED/],
    ...[undefined, null, ['QUEUED']].map((reply) => [() => reply, 503, /send returned/]), // such as of a send without return
    [() => Promise.reject(new Error("ERR unknown command 'GO.RATE'")), 500, /load the module gothrottle/],
  ]) {
    const by = await connect((name, ...words) => (name === 'COMMAND' ? [] : what(name, ...words)), { timeout: 20, log: (text) => lines.push(text) });
    for (let i = 0; i < 2; i++) { // frameworks send the message to clients
      await assert.rejects(by.rate('a', { perMinute: 5 }).allow('k'), (err) => err.status === status && err.message === 'no decision' && err.cause instanceof Error);
    }
    assert.match(lines.join(), line);
    assert.equal(lines.splice(0).length, 1);
  }
});

test('after a call without a reply one call in 3 s tries, until a reply comes', async (t) => {
  const waits = []; // calls
  const sent = ([name]) => (name === 'COMMAND' ? [] : new Promise((resolve, reject) => { waits.push({ resolve, reject }); }));
  const client = { options: { disableOfflineQueue: true, pingInterval: 1, socket: { socketTimeout: 2, reconnectStrategy: Date } }, sendCommand: sent, on() {} };
  const [page, login] = [await connect(client, { timeout: 20, ...quiet }), await connect(client, { timeout: 20, ...quiet })]
    .map((by) => by.rate('a', { perMinute: 5, failOpen: true, coalesce: false }));
  mock.timers.enable({ apis: ['Date'], now: Date.now() });
  t.after(() => mock.timers.reset());
  const reply = [0, 9, 7, -1, 1000];
  for (const [act, waiting] of [
    [() => {}, 3], // all are sent before the first has no reply
    [() => {}, 3],
    [() => mock.timers.tick(2999), 3],
    [() => mock.timers.tick(1), 4],
    [() => mock.timers.tick(2999), 4],
    [() => mock.timers.tick(1), 5],
    [() => waits[0].resolve(reply), 8], // comes late
    [() => waits[1].reject(new Error('Socket closed unexpectedly')), 11], // the next call has a new connection
    [() => waits[2].reject(new Error('OOM command not allowed')), 14],
  ]) {
    act();
    await setImmediate();
    for (const { source } of await Promise.all([page.allow('k'), page.allow('k'), login.allow('k')])) assert.equal(source, 'failed-open');
    assert.equal(waits.length, waiting, act);
  }
});

test('a client that would send twice, or wait without end, is refused', async () => {
  const { Redis, Cluster } = require('ioredis');
  const { createClient, createCluster } = require('redis');
  const { socketTimeout, ...others } = socket;
  for (const [make, good, bad] of [
    [(options) => new Redis({ ...options, lazyConnect: true }), ioredis, [{ maxRetriesPerRequest: 20 }, { enableOfflineQueue: true },
      { socketTimeout: undefined }, { socketTimeout: 3000 }]],
    [createClient, nodeRedis, [{ disableOfflineQueue: false }, { pingInterval: undefined }, { pingInterval: 2000 },
      { socket: { ...socket, socketTimeout: 3000 } }, { socket: { socketTimeout } }, { socket: others }, { socket: undefined }]],
  ]) {
    const client = (change) => connect(make({ ...good, ...change }), { ...quiet, timeout: 20 });
    await client({});
    for (const change of bad) await assert.rejects(client(change), new RegExp(`client needs.*${Object.keys(change)[0]}`));
  }
  for (const cluster of [new Cluster([], { lazyConnect: true }), createCluster({ rootNodes: [] })]) {
    await assert.rejects(connect(cluster), /client needs.*ocketTimeout/);
  }
  await assert.rejects(connect(undefined), /client is missing/);
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
  const [patient, hasty] = await Promise.all([timeout, 50].map(async (ms) => (await connect(node, { script: true, timeout: ms, ...quiet })).rate('a', { perDay: 1 })));
  await Promise.all(['a', 'b', 'c', 'd'].map((key) => patient.allow(key)));
  await assert.rejects(hasty.allow('z'), ({ cause }) => /no reply/.test(cause.message));
  await assert.rejects(hasty.allow('z'), ({ cause }) => /no call was sent/.test(cause.message));
  await patient.allow('a');
});

function bundled() { // by esbuild, and run in a folder without packages
  const contents = ['', '/express', '/stores'].map((name, i) => `export * as part${i} from 'gothrottle${name}';`).join('');
  const stdin = { contents, resolveDir: import.meta.dirname };
  const { outputFiles: [{ text }] } = buildSync({ stdin, bundle: true, platform: 'node', write: false, external: ['ioredis'] });
  const module = {};
  new Function('module', 'require', '__dirname', text)(module, createRequire('/'), '/');
  return module.exports.part0;
}

test('the script, in a bundle too, is sent once', async () => {
  const bare = await made('redis', 'single', BARE);
  await bare.sendCommand(['SCRIPT', 'FLUSH']);
  const { mock: sent } = mock.method(bare, 'sendCommand');
  const texts = () => sent.calls.filter(({ arguments: [[name]] }) => name === 'EVAL').length;
  const by = (await bundled().connect(bare, { script: true, timeout })).rate('a', { perDay: 9, coalesce: false });
  const said = await Promise.all(Array.from({ length: 9 }, () => by.allow('k')));
  assert.deepEqual(said.map(({ remaining }) => remaining).sort(), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  await (await connect(bare, { script: readFileSync(SCRIPT, 'utf8'), timeout })).rate('a', { perDay: 9 }).allow('j'); // the package has the same
  assert.equal(texts(), 1);
  await assert.rejects(connect(bare, { script: 'gothrottle.lua' }), /script is true/);
  bare.destroy();
});

test('nothing stays after close()', async () => {
  const run = (text) => promisify(execFile)(process.execPath, ['--expose-gc', '--input-type=module', '-e', `
    import { connect } from 'gothrottle';
    const limits = await connect('${url}', { timeout: ${timeout} });
    const lease = await limits.slots('exit', { limit: 9, ttl: '1h' }).lease('bob');
    const exits = limits.rate('exits', { perMinute: 5, rememberDenials: true });
    const crowd = (round) => Promise.all(Array.from({ length: 1000 }, (_, i) => exits.allow(String(i % 100 + 100 * round))));
    await crowd(0);
    ${text}`], { cwd: import.meta.dirname, timeout: 30_000 });
  await run('await limits.close();'); // a process that doesn't end is killed
  const { stdout } = await run(`await limits.close(); await new Promise(setImmediate); await new Promise(setImmediate);
    console.log(process.getActiveResourcesInfo().filter((name) => !/^(Pipe|TTY|CloseReq|Immediate)/.test(name)).join());`);
  assert.equal(stdout.trim(), '');
  const heap = await run(`const used = async (rounds) => {
      for (const round of Array(rounds).keys()) await crowd(round % 10);
      gc();
      return process.memoryUsage().heapUsed;
    };
    await used(20);
    console.log(-await used(20) + await used(100)); await limits.close();`);
  assert.ok(Number(heap.stdout) < 1_000_000, `the heap grew by ${heap.stdout} bytes`);
});
