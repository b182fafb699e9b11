// Asks for decisions by the Node client and others, 256 calls at a time, for one key and for 10,000: build/bench.sh client
// runs it on a server of its own, at SOCKET. All limits admit all calls. It prints samples in the Go benchmark format.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { performance } from 'node:perf_hooks';
import { Ratelimit } from '@upstash/ratelimit';
import { connect } from 'gothrottle';
import { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';

const [ms, callers, units] = [Number(process.env.MS || 3000), 256, 1_000_000_000];
const client = new Redis(process.env.SOCKET, { enableOfflineQueue: false, maxRetriesPerRequest: 0, socketTimeout: 2000 });
await once(client, 'ready');
const ours = async (kind, options) => {
  const limits = await connect(client, { timeout: 10_000, ...options });
  const limiter = limits[kind](kind, { limit: units, per: '1m' });
  return async (key) => (await limiter.allow(key)).allowed;
};
const flexible = new RateLimiterRedis({ storeClient: client, points: units, duration: 60 });
// Its scripts have a flag that only its own service knows.
const scripts = new Map(); // of the library's sha1 -> ours
const upstash = new Ratelimit({
  redis: {
    async evalsha(sha, keys, args) {
      if (!scripts.has(sha)) throw new Error('NOSCRIPT');
      return client.evalsha(scripts.get(sha), keys.length, ...keys, ...args);
    },
    async eval(script, keys, args) {
      scripts.set(createHash('sha1').update(script).digest('hex'), await client.script('LOAD', script.replace(/^#!.*/, '')));
      return client.eval(script.replace(/^#!.*/, ''), keys.length, ...keys, ...args);
    },
  },
  limiter: Ratelimit.slidingWindow(units, '60 s'), ephemeralCache: false, timeout: 0,
});
const contenders = {
  gothrottle: await ours('rate'),
  'gothrottle,_one_by_one': await ours('rate', { coalesce: false }),
  'gothrottle_by_script': await ours('rate', { script: true }),
  'gothrottle,_window': await ours('window'),
  'rate-limiter-flexible': async (key) => (await flexible.consume(key)).remainingPoints >= 0,
  '@upstash_ratelimit,_sliding_window': async (key) => (await upstash.limit(key)).success,
};

const [, version] = /redis_version:(\S+)/.exec(await client.info('server'));
const cpu = async () => { // of the server, in µs
  const info = await client.info('cpu');
  return ['user', 'sys'].reduce((sum, kind) => sum + 1e6 * new RegExp(`used_cpu_${kind}:([0-9.]+)`).exec(info)[1], 0);
};

async function asking(ask, keys, length) {
  const [took, end] = [[], performance.now() + length];
  await Promise.all(Array.from({ length: callers }, async (_, caller) => {
    for (let n = caller; performance.now() < end; n += callers) {
      const began = performance.now();
      if (!await ask(`k${n * 7919 % keys}`)) throw new Error('a call was not admitted');
      took.push(performance.now() - began);
    }
  }));
  return took;
}

for (const keys of [1, 10_000]) {
  for (const [name, ask] of Object.entries(contenders)) {
    await asking(ask, keys, ms / 3);
    const [before, own, began] = [await cpu(), process.cpuUsage(), performance.now()];
    const took = (await asking(ask, keys, ms)).sort((a, b) => a - b);
    const [seconds, used] = [(performance.now() - began) / 1000, process.cpuUsage(own)];
    const figures = { 'ops/s': took.length / seconds, 'server-ns/op': 1000 * (await cpu() - before) / took.length,
      'client-ns/op': 1000 * (used.user + used.system) / took.length, 'p99-ms': took[Math.floor(took.length * 0.99)] };
    console.log(`BenchmarkNode/keys=${keys}/row=${name}/server=Redis_${version} ${took.length} ${Object.entries(figures).map(([unit, value]) => `${value.toPrecision(4)} ${unit}`).join(' ')}`);
  }
}
client.disconnect();
