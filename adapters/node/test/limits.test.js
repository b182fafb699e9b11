// What limiters decide, on servers in memory: TestAdapters runs this file.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, mock, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { addressKey, connect } from 'gothrottle';

const { ADDR, BARE, TICKETS } = process.env;
const timeout = 20_000; // machines may be slow
const control = await createRequire(import.meta.url)('redis').createClient({ url: `redis://${ADDR}` }).connect(); // DEBUG frees it of faults
const advance = (time) => control.sendCommand(['DEBUG', 'ADVANCE', time]);
await control.sendCommand(['DEBUG', 'FAULT', 'NONE']);
const limits = await connect(`redis://${ADDR}`, { timeout });
after(async () => {
  await limits.close();
  control.destroy();
});
const spied = async (options) => { // over a function, which notes what is sent
  const sent = [];
  return [sent, await connect((...words) => { sent.push(words); return control.sendCommand(words); }, { timeout, ...options })];
};

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
      await advance(`${ms}ms`);
      const [ours, its] = await Promise.all(pair.map((limiter) => limiter[verb]('bob', ...args)));
      said.push(`+${ms} ${verb} ${args}`);
      const text = `${kind} ${JSON.stringify(limit)}: ${said.join(', ')}`;
      assert.deepEqual([its.allowed, its.remaining, its.limit], [ours.allowed, ours.remaining, ours.limit], text);
      for (const time of ['retryAfter', 'resetAfter']) assert.ok(its[time] === ours[time] || Math.abs(its[time] - ours[time]) <= 1, `${text}: ${time} ${its[time]}, not ${ours[time]}`);
    }
  }
});

test('10,000 concurrent calls on one key take exactly the limit, in few commands', async () => {
  const [sent, by] = await spied();
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
  const [sent, by] = await spied({ rememberDenials: true });
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
  await advance('60s');
  assert.equal((await limiter.allow('bob')).allowed, true);
});

test('wait: until there is room, or a signal is aborted, before, during or after the call', async () => {
  const reason = new Error('stop');
  for (const kind of ['rate', 'window']) {
    const one = limits[kind](`wait ${kind}`, { limit: 1, per: '1h' });
    const [first, second] = [await one.wait('bob'), await one.wait('bob', { maxWait: '1m' })];
    assert.deepEqual([first.allowed, second.allowed], [true, false]);
    assert.ok(second.retryAfter >= 3_540_000);
    await assert.rejects(one.wait('bob', { signal: AbortSignal.abort(reason) }), reason);
    for (const begin of [setImmediate, (f) => setTimeout(f, 50)]) {
      const stop = new AbortController();
      const waiting = one.wait('bob', { signal: stop.signal });
      begin(() => stop.abort(reason));
      await assert.rejects(waiting, reason);
    }
    assert.ok((await one.wait('bob', { maxWait: 0 })).retryAfter <= 3_600_000); // the units were given back
    await one.reset('bob');
    const stop = new AbortController();
    const now = one.wait('bob', { signal: stop.signal });
    stop.abort(reason); // while the server is asked
    await assert.rejects(now, reason);
    assert.equal((await one.peek('bob')).remaining, 1);
    const late = new AbortController();
    assert.equal((await one.wait('bob', { signal: late.signal })).allowed, true);
    late.abort(reason);
    assert.equal((await one.peek('bob')).remaining, 0);
  }
});

test('slots renew themselves until they are released or lost', async () => {
  const [sent, by] = await spied();
  const jobs = by.slots('jobs', { limit: 1, ttl: 3000 });
  const lease = await jobs.lease('bob');
  assert.deepEqual([lease.allowed, (await jobs.lease('bob')).allowed], [true, false]);
  await advance('2500ms');
  for (const { length } = sent; sent.length === length;) await sleep(20); // a renewal
  await advance('2500ms');
  assert.equal((await jobs.lease('bob')).allowed, false);
  await lease.release();
  const other = await jobs.lease('bob');
  assert.equal(await jobs.release('bob', other.id), true);
  await once(other.signal, 'abort');
  assert.match(other.signal.reason.message, /lapsed, or was released/);
  assert.equal((await jobs.lease('bob')).allowed, true);
  await by.close(); // releases it
  assert.equal((await limits.slots('jobs', { limit: 1, ttl: 3000 }).lease('bob')).allowed, true);
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
  await advance('31s');
  assert.equal(await lost.settle(70), 'counted'); // by a new hold
  const late = await tokens.hold('ann', 70);
  await advance('31s');
  await tokens.allow('ann', 100);
  assert.equal(await late.settle(70), 'refused');
  assert.deepEqual([await used('bob'), await used('ann')], [100, 100]);
  await assert.rejects(tokens.hold('a}b', 1), /brace/);
  const tagged = await tokens.hold('{site}a', 1);
  await control.sendCommand(['DEL', 'tokens:{site}a:held']);
  assert.equal(await tagged.settle(2), 'counted');
});

test('a hold that was lost is charged anew if no settlement was sent', async () => {
  let refused = 0;
  const by = await connect((...words) => (refused-- > 0 ? Promise.reject(new Error('The client is offline')) : control.sendCommand(words)), { timeout, log() {} });
  const tokens = by.quota('unsent', { perDay: 100 });
  const held = await tokens.hold('k', 60);
  await control.sendCommand(['DEL', '{unsent:k}:held']);
  refused = 3;
  assert.equal(await held.settle(30), 'counted');
  assert.equal((await tokens.peek('k')).remaining, 70);
});

test('a hold of several levels takes all or nothing, and its ticket ends it elsewhere', async () => {
  for (const by of [limits, await connect('memory:')]) {
    const [user, team] = [by.quota('user', { perDay: 100 }), by.rate('team', { perHour: 1000 })];
    const left = async () => [(await user.peek('{acme}bob')).remaining, (await team.peek('{acme}')).remaining];
    const levels = (n, ofTeam) => [user.part('{acme}bob', n), team.part('{acme}', ofTeam)];
    const hold = await by.hold(levels(50, 200), { ttl: '10m', deadline: 0 });
    const [tooMuch, ofTeam] = [await by.hold(levels(51, 1)), await by.hold(levels(1, 801))];
    assert.deepEqual([hold.allowed, tooMuch.allowed, ofTeam.allowed], [true, false, false]);
    assert.match(ofTeam.headers['RateLimit-Policy'], /^"team";q=1000/);
    if (by === limits) {
      assert.ok(Math.abs(parseInt(hold.ticket.split('.')[1], 36) - Date.now() - 540_000) < timeout);
      for (let i = 0; i < 2; i++) assert.equal(await by.resume(hold.ticket, levels(), { ttl: '10m' }).settle(20), 'counted'); // or it was already
      const given = await by.hold(levels(80, 980), { deadline: 0 });
      await by.resume(given.ticket, levels()).release();
      const all = await by.hold(levels(80, 980));
      assert.equal(all.allowed, true);
      await all.release();
      for (const ticket of ['x', '.y', 'x.', `${hold.ticket}!`]) assert.throws(() => by.resume(ticket, levels()), /ticket/);
    } else {
      assert.equal(hold.ticket, '');
      await hold.settle(20);
    }
    assert.deepEqual(await left(), [80, 980]);
    assert.equal(await by.resume('', levels()).settle(3), 'counted'); // it holds nothing, and is charged
    assert.deepEqual(await left(), [77, 977]);
    const jobs = by.slots('jobs', { limit: 1, ttl: '1h' });
    for (const parts of [undefined, [], [jobs.part('k', 'a')], [user.part('k', 1, { share: 1 })], [user.part('k', 1.5)]]) {
      await assert.rejects(async () => by.hold(parts), TypeError);
    }
  }
});

test('tickets are those of the other clients', () => {
  const tokens = limits.quota('tickets', { perDay: 100 });
  for (const { ticket, ttl, lapses } of JSON.parse(readFileSync(TICKETS, 'utf8'))) {
    const resume = () => limits.resume(ticket, [tokens.part('k')], { ttl: ttl ?? '30s' });
    if (lapses === undefined) assert.throws(resume, /ticket/, ticket);
    else assert.equal(resume().ticket, ticket);
  }
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
