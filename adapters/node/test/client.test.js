// The client, on servers in memory: TestAdapters runs this file.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, mock, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { addressKey, connect, Undecided } from 'gothrottle';

const require = createRequire(import.meta.url);
const { ADDR, BARE, CLUSTER, FAULTS, SERVERS } = process.env;
const timeout = 20_000; // machines may be slow
const url = `redis://${ADDR}`;
const control = await require('redis').createClient({ url }).connect(); // DEBUG frees it of faults
await control.sendCommand(['DEBUG', 'FAULT', 'NONE']);
const limits = await connect(url, { timeout });
after(async () => {
  await limits.close();
  control.destroy();
});
const until = async (what, f) => {
  for (const end = Date.now() + 30_000; Date.now() < end; await sleep(20)) if (await f()) return;
  assert.fail(`not within 30 s: ${what}`);
};
const answers = { 503: 'unavailable', 500: 'fault' };

test('faults: a call is sent once, says what it knows, and the server decides again afterwards', { concurrency: true }, async (t) => {
  const rows = JSON.parse(readFileSync(FAULTS, 'utf8'));
  const addrs = SERVERS.split(' ');
  await Promise.all(rows.map(({ name, debug, answer, taken }, i) => t.test(name, async () => {
    const lines = [];
    const server = await connect(`redis://${addrs[i]}`, { timeout: 1000, log: (line) => lines.push(line) });
    const faults = require('redis').createClient({ url: `redis://${addrs[i]}` });
    await faults.connect();
    const set = (words) => faults.sendCommand(['DEBUG', ...words.split(' ')]);
    await set('FAULT NONE');
    const daily = server.quota('faults', { perDay: 100 });
    await until('the first call', () => daily.allow('k').catch(() => {}));
    const before = (await daily.peek('k')).remaining;
    lines.length = 0;
    await set(debug);
    const said = await daily.allow('k').then(() => 'decided', ({ status }) => answers[status]);
    if (answer !== 'either') assert.equal(said, answer);
    for (let n = 0; n < 3 && answer === 'unavailable'; n++) await daily.peek('k').catch(() => {});
    assert.ok(lines.length <= 2, lines.join('\n')); // of an outage, and of its end
    if (said === 'unavailable') assert.match(lines[0], /no decision/);
    await set('FAULT NONE');
    await until('the server decides', () => daily.peek('k').catch(() => {}));
    await sleep(100);
    const took = before - (await daily.peek('k')).remaining;
    assert.ok(took >= taken[0] && took <= taken[1], `${took} units were taken`);
    await server.close();
    faults.destroy();
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

// Each library, single and cluster, by module and script, with several keys.
const socket = { socketTimeout: 2000, reconnectStrategy: () => 50 };
const nodeRedis = { disableOfflineQueue: true, pingInterval: 1000, socket };
const ioredis = { enableOfflineQueue: false, maxRetriesPerRequest: 0, socketTimeout: 2000, keyPrefix: 'ignored:' };
const clients = {
  redis: [(lib, addr) => lib.createClient({ url: `redis://${addr}`, ...nodeRedis }).connect(),
    (lib, addr) => {
      const cluster = lib.createCluster({ rootNodes: [{ url: `redis://${addr}` }], defaults: nodeRedis, maxCommandRedirections: 0 });
      return cluster.connect().then(() => cluster);
    }],
  ioredis: [(lib, addr) => new lib.Redis(`redis://${addr}`, ioredis),
    (lib, addr) => new lib.Cluster([`redis://${addr}`],
      { enableOfflineQueue: false, retryDelayOnFailover: 0, redisOptions: ioredis, maxRedirections: 0 })],
};
for (const name of ['redis', 'redis4', 'redis5', 'ioredis', 'ioredis5']) {
  const [single, cluster] = clients[name.replace(/\d/, '')];
  const ways = { single: [single, ADDR], cluster: [cluster, CLUSTER], script: [single, BARE, true], 'cluster by script': [cluster, CLUSTER, true] };
  for (const [way, [make, addr, script = false]] of Object.entries(ways)) {
    test(`${name}, ${way}`, async () => {
      const client = await make(require(name), addr);
      if (name.startsWith('io')) await once(client, 'ready');
      const by = await connect(client, { timeout, script, prefix: `${name} ${way} ` });
      const login = by.rate('login', { perMinute: 5, burst: 3 });
      for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) {
        const all = await Promise.all([1, 2, 3, 4].map(() => login.allow(key)));
        assert.deepEqual(all.map(({ allowed, remaining }) => [allowed, remaining]), [[true, 2], [true, 0], [true, 0], [false, 0]]);
      }
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
    });
  }
}

// The client's words and the limiters in this process decide random calls as the server does.
test('random calls: memory: decides as the server', async (t) => {
  const [seconds, micros] = await control.sendCommand(['TIME']);
  mock.timers.enable({ apis: ['Date'], now: seconds * 1000 + Math.floor(micros / 1000) });
  t.after(() => mock.timers.reset());
  const local = await connect('memory:');
  const kinds = [['rate', { perMinute: 5, burst: 3 }], ['rate', { limit: 7, per: '1m', lockout: '20s' }], ['window', { perMinute: 5, exact: true }],
    ['quota', { perMinute: 5 }], ['quota', { perDay: 5, zone: 'Asia/Kolkata' }], ['quota', { perMonth: 5, zone: 'America/New_York' }]];
  for (let seed = 1, state = 1; seed <= 30; seed++) {
    const pick = (below) => (state = state * 48271 % 2147483647) % below;
    const [kind, limit] = kinds[seed % kinds.length];
    const pair = [limits, local].map((by) => by[kind](`random ${seed}`, limit));
    const said = [];
    for (let i = 0; i < 40; i++) {
      const [verb, ...args] = [['allow', 1 + pick(3)], ['allow', 1], ['peek'], ['refund', 1 + pick(3)], ['settle', 1 + pick(8)], ['settle', -1]][pick(6)];
      const ms = [0, 1, 500, 12_000, 19_999, 61_000, 90_000_000][pick(7)];
      mock.timers.tick(ms);
      await control.sendCommand(['DEBUG', 'ADVANCE', `${ms}ms`]);
      const [ours, its] = await Promise.all(pair.map((limiter) => limiter[verb]('bob', ...args)));
      said.push(`+${ms} ${verb} ${args}`);
      const text = `${kind} ${JSON.stringify(limit)}: ${said.join(', ')}`;
      assert.deepEqual([its.allowed, its.remaining, its.limit], [ours.allowed, ours.remaining, ours.limit], text);
      for (const time of ['retryAfter', 'resetAfter']) assert.ok(its[time] === ours[time] || Math.abs(its[time] - ours[time]) <= 1, `${text}: ${time} ${its[time]}, not ${ours[time]}`);
    }
  }
});

test('10,000 concurrent calls on one key take exactly the limit, in few commands', async () => {
  const sent = [];
  const by = await connect((...words) => { sent.push(words); return control.sendCommand(words); }, { timeout });
  for (const limiter of [by.rate('crowd r', { limit: 4000, per: '100d' }), by.window('crowd w', { limit: 4000, per: '1h' }),
    by.quota('crowd q', { perDay: 4000 })]) {
    sent.length = 0;
    const all = await Promise.all(Array.from({ length: 10_000 }, () => limiter.allow('bob')));
    const first = all.findIndex(({ allowed }) => !allowed);
    assert.deepEqual([first, all.filter(({ allowed }) => allowed).length], [4000, 4000]); // first come, first served
    assert.ok(all.every(({ allowed, retryAfter }) => (retryAfter > 0) === !allowed));
    assert.equal(sent.length, 2);
  }
});

test('callers that gave up take no place, and the others get their units', async () => {
  const replies = [];
  const slow = await connect((name) => (name === 'COMMAND' ? [] : new Promise((resolve) => { replies.push(resolve); })), { timeout: 400, log() {} });
  const limiter = slow.rate('slow', { perMinute: 2 });
  const first = limiter.allow('k');
  const early = [limiter.allow('k'), limiter.allow('k')].map((call) => call.catch(({ cause }) => cause.message));
  await sleep(200);
  const later = [limiter.allow('k'), limiter.allow('k')];
  await sleep(50);
  replies[0]([0, 2, 1, -1, 30_000]); // the other four are sent
  assert.equal((await first).allowed, true);
  assert.deepEqual(await Promise.all(early), Array(2).fill('no reply within 400 ms'));
  replies[1]([0, 2, 0, 30_000, 60_000, 1]);
  assert.deepEqual((await Promise.all(later)).map(({ allowed }) => allowed), [true, false]);
});

test('denials are remembered if that is asked for, until they end', async (t) => {
  const sent = [];
  const by = await connect((...words) => { sent.push(words); return control.sendCommand(words); }, { timeout, rememberDenials: true });
  const limiter = by.rate('denials', { perMinute: 1 });
  mock.timers.enable({ apis: ['Date'], now: Date.now() });
  t.after(() => mock.timers.reset());
  await limiter.allow('bob');
  await limiter.allow('bob');
  sent.length = 0;
  mock.timers.tick(20_000);
  const again = await limiter.allow('bob');
  assert.deepEqual([again.allowed, again.retryAfter, again.source, sent.length], [false, 40_000, 'denials', 0]);
  mock.timers.tick(40_000);
  await control.sendCommand(['DEBUG', 'ADVANCE', '60s']);
  assert.equal((await limiter.allow('bob')).allowed, true);
});

test('wait', async () => {
  const quick = limits.rate('quick', { limit: 1, per: '1h' });
  const [first, second] = [await quick.wait('bob'), await quick.wait('bob', { maxWait: '1m' })];
  assert.deepEqual([first.allowed, second.allowed, second.retryAfter], [true, false, 3_540_000]);
  const reason = new Error('stop');
  const stop = new AbortController();
  const waiting = quick.wait('bob', { signal: stop.signal });
  setTimeout(() => stop.abort(reason), 50);
  await assert.rejects(waiting, reason);
  assert.equal((await quick.wait('bob', { maxWait: 0 })).retryAfter, 3_600_000); // the units were given back
  await assert.rejects(quick.wait('bob', { signal: stop.signal }), reason);
  const window = limits.window('quick window', { limit: 1, per: '1h' });
  assert.deepEqual([(await window.wait('bob')).allowed, (await window.wait('bob', { maxWait: '1m' })).allowed], [true, false]);
});

test('slots renew themselves until they are released or lost', async () => {
  const jobs = limits.slots('jobs', { limit: 1, ttl: 300 });
  const lease = await jobs.lease('bob');
  assert.deepEqual([lease.allowed, (await jobs.lease('bob')).allowed], [true, false]);
  await control.sendCommand(['DEBUG', 'ADVANCE', '250ms']);
  await sleep(200); // a renewal
  await control.sendCommand(['DEBUG', 'ADVANCE', '250ms']);
  assert.equal((await jobs.lease('bob')).allowed, false);
  await lease.release();
  const other = await jobs.lease('bob');
  assert.equal(await jobs.release('bob', other.id), true);
  await once(other.signal, 'abort');
  assert.match(other.signal.reason.message, /lapsed, or was released/);
  assert.equal((await jobs.lease('bob')).allowed, true); // close() releases it
  const here = await (await connect('memory:')).slots('jobs', { limit: 1, ttl: '1h' }).lease('bob');
  assert.equal(await here.renew(), true);
  await here.release();
  assert.equal(await here.renew(), false);
});

test('a hold takes units until their cost is known', async () => {
  const tokens = limits.quota('tokens', { perDay: 100 });
  const used = async (key) => 100 - (await tokens.peek(key)).remaining;
  const [first, second] = [await tokens.hold('bob', 40), await tokens.hold('bob', 61)];
  assert.deepEqual([first.allowed, second.allowed, await used('bob')], [true, false, 0]);
  assert.equal(await first.settle(30), 'counted');
  assert.equal(await first.settle(30), 'counted'); // is not sent again
  const third = await tokens.hold('bob', 70);
  await third.release();
  await assert.rejects(third.settle(1), /released/);
  await assert.rejects(second.settle(1), /denied/);
  assert.equal(await used('bob'), 30);
  const lost = await tokens.hold('bob', 70);
  await control.sendCommand(['DEBUG', 'ADVANCE', '31s']);
  assert.equal(await lost.settle(70), 'counted'); // by a new hold
  const late = await tokens.hold('ann', 70);
  await control.sendCommand(['DEBUG', 'ADVANCE', '31s']);
  await tokens.allow('ann', 100);
  assert.equal(await late.settle(70), 'refused');
  assert.deepEqual([await used('bob'), await used('ann')], [100, 100]);
  await assert.rejects(tokens.hold('a}b', 1), /brace/);
  const tagged = await tokens.hold('{site}a', 1);
  await control.sendCommand(['DEL', 'tokens:{site}a:held']);
  assert.equal(await tagged.settle(2), 'counted');
  const local = (await connect('memory:')).quota('tokens', { perDay: 100 });
  assert.equal(await (await local.hold('bob', 40)).settle(30), 'counted');
  assert.equal((await local.peek('bob')).remaining, 70);
});

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

test('nothing stays after close()', async () => {
  const run = (text) => promisify(execFile)(process.execPath, ['--input-type=module', '-e', `
    import { connect } from 'gothrottle';
    const limits = await connect('${url}', { timeout: ${timeout} });
    const lease = await limits.slots('exit', { limit: 9, ttl: '1h' }).lease('bob');
    await Promise.all(Array.from({ length: 100 }, () => limits.rate('exits', { perMinute: 5, rememberDenials: true }).allow('bob')));
    ${text}`], { cwd: import.meta.dirname, timeout: 30_000 });
  await run('await limits.close();'); // a process that doesn't end is killed
  const { stdout } = await run(`await limits.close(); await new Promise(setImmediate); await new Promise(setImmediate);
    console.log(process.getActiveResourcesInfo().filter((name) => !/^(Pipe|TTY|CloseReq|Immediate)/.test(name)).join());`);
  assert.equal(stdout.trim(), '');
});

test('wrong words are refused', async () => {
  for (const [kind, limit, text] of [
    ['rate', {}, /one of perSecond/], ['rate', { perMinute: 5, per: '1m' }, /one of/], ['rate', { perMinute: 0 }, /perMinute must be/],
    ['rate', { perMinute: 1.5 }, /perMinute/], ['rate', { limit: 5, per: '5 m' }, /per must be/], ['rate', { perMonth: 5 }, /quota/],
    ['rate', { perMinute: 5, burst: 1e13 }, /burst/], ['rate', { perMinute: 5, lockout: 0 }, /lockout/], ['rate', { perMinute: 5, failLocal: 2 }, /share/],
    ['quota', { perDay: 5, zone: 'Nowhere' }, /Nowhere/], ['slots', { limit: 5 }, /ttl/],
  ]) assert.throws(() => limits[kind]('wrong', limit), text);
  const rate = limits.rate('wrong', { perMinute: 5 });
  for (const call of [() => rate.allow(['a', 'b']), () => rate.allow(), () => rate.allow('a', -1), () => rate.allow('a', '1'),
    () => rate.refund('a', 0), () => rate.wait('a', { maxWait: 'soon' })]) await assert.rejects(call, TypeError);
  assert.throws(() => limits.rate('', { perMinute: 5 }), /name/);
  await assert.rejects(connect(`redis://${BARE}`, { log() {} }), /load the module gothrottle/);
});

test('an address is a key', () => {
  for (const [address, key] of Object.entries({ '1.2.3.4': '1.2.3.4', '::ffff:1.2.3.4': '1.2.3.4', '::1': '::/64', '2001:db8::1': '2001:db8::/64',
    '2001:DB8:0:5:1:2:3:4': '2001:db8:0:5::/64', 'fe80::1%eth0': 'fe80::/64' })) assert.equal(addressKey(address), key);
});
