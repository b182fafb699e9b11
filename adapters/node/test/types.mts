// tsc --strict checks this file, as an ECMAScript module and, in types.cts, as CommonJS, in all settings of build/test-languages.sh.
import fastifyRateLimit from '@fastify/rate-limit';
import { ThrottlerModule } from '@nestjs/throttler';
import express from 'express';
import { rateLimit } from 'express-rate-limit';
import fastify from 'fastify';
import { createClient } from 'redis';
import { Redis } from 'ioredis';
import { Hono } from 'hono';
import { addressKey, connect, type Lease, type Options, type Result, Undecided } from 'gothrottle';
import { limit as onExpress } from 'gothrottle/express';
import { limit as onFastify } from 'gothrottle/fastify';
import { limit as onHono } from 'gothrottle/hono';
import { limit as onNest } from 'gothrottle/nest';
import { expressStore, fastifyStore, nestStorage } from 'gothrottle/stores';

const client = createClient();
const ioredis = new Redis();

export async function clients(options: Options): Promise<Result | Lease> {
  const limits = await connect('redis://127.0.0.1:6379', options);
  await connect(client);
  await connect(ioredis, { failLocal: 0.5, script: true });
  await connect((...words: string[]) => client.sendCommand(words));
  const login = limits.rate('login', { perMinute: 5, burst: 3, lockout: '15m', failClosed: true });
  const daily = limits.quota('day', { perMonth: 5, zone: 'Europe/Berlin' });
  const { each, decider } = await limits.all(login.part('bob'), daily.part('bob', 2, { share: 4 }));
  const admitted: boolean = each[decider]!.allowed;
  await login.wait('bob', { n: 2, signal: AbortSignal.timeout(5000), maxWait: '1m' }).catch((err) => err instanceof Undecided && err.status);
  express().use(onExpress(login), onExpress(login, (req) => addressKey(req.ip!)));
  fastify().addHook('onRequest', onFastify(login));
  new Hono().use(onHono(login, (c) => c.req.query('user')!));
  onNest(login, (req) => req.ip).canActivate;
  rateLimit({ store: expressStore(limits, 'pages') });
  fastify().register(fastifyRateLimit, { store: fastifyStore(limits, 'api') });
  ThrottlerModule.forRoot({ throttlers: [{ limit: 5, ttl: 60_000 }], storage: nestStorage(limits, 'nest') });
  const hold = await limits.hold([login.part('bob', 4), daily.part('bob', 4)], { ttl: '1m', deadline: 0 });
  if (await limits.resume(hold.ticket, [login.part('bob'), daily.part('bob')]).settle(3) === 'unknown') throw hold.cause;
  // @ts-expect-error a part has units
  await login.hold('bob');
  // @ts-expect-error two periods
  limits.rate('login', { limit: 5 });
  // @ts-expect-error a quota has months
  limits.window('login', { perMonth: 5 });
  // @ts-expect-error Hono needs a key
  onHono(login);
  return admitted ? login.allow('bob', 3) : limits.slots('jobs', { limit: 4, ttl: '30s' }).lease('bob');
}

// @ts-expect-error words are strings
void connect((...words: number[]) => words);
