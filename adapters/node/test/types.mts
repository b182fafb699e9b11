// tsc --strict checks this file, as an ECMAScript module and, in types.cts, as CommonJS, in all settings of build/test-languages.sh.
import fastifyRateLimit from '@fastify/rate-limit';
import { ThrottlerModule } from '@nestjs/throttler';
import express from 'express';
import { rateLimit } from 'express-rate-limit';
import fastify from 'fastify';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { createClient } from 'redis';
import { Redis } from 'ioredis';
import { Hono } from 'hono';
import { addressKey, connect, type Lease, type Options, type Result, Undecided } from 'gothrottle';
import { limit as onExpress } from 'gothrottle/express';
import { limit as onFastify } from 'gothrottle/fastify';
import { limit as onHono } from 'gothrottle/hono';
import { limit as onNest } from 'gothrottle/nest';
import { GothrottleStore } from 'gothrottle/express-rate-limit';
import { gothrottleStore } from 'gothrottle/fastify-rate-limit';
import { GothrottleStorage } from 'gothrottle/nestjs-throttler';
import { RateLimiterGothrottle } from 'gothrottle/rate-limiter-flexible';

const client = createClient();
const send = (...words: string[]) => client.sendCommand(words);
const ioredis = new Redis();
const viaIoredis = ([command, ...words]: string[]) => ioredis.call(command!, ...words);

rateLimit({ store: new GothrottleStore({ send, prefix: 'login', failOpen: true }) });
fastify().register(fastifyRateLimit, { store: gothrottleStore({ send: (...words) => viaIoredis(words), prefix: 'api' }) });
ThrottlerModule.forRoot({ throttlers: [{ limit: 5, ttl: 60_000 }], storage: new GothrottleStorage({ client, prefix: 'api' }) });
const limits = { points: 5, duration: 60 };
const insuranceLimiter = new RateLimiterMemory(limits);
const limiter = new RateLimiterGothrottle({ ...limits, send, keyPrefix: 'login', insuranceLimiter });
export const remaining: Promise<number> = limiter.consume('bob').then((res) => res.remainingPoints);

export async function clients(options: Options): Promise<Result | Lease> {
  const limits = await connect('redis://127.0.0.1:6379', options);
  await connect(client);
  await connect(ioredis, { failLocal: 0.5, script: true });
  const login = limits.rate('login', { perMinute: 5, burst: 3, lockout: '15m', failClosed: true });
  const daily = limits.quota('day', { perMonth: 5, zone: 'Europe/Berlin' });
  const { each, decider } = await limits.all(login.part('bob'), daily.part('bob', 2, { share: 4 }));
  const admitted: boolean = each[decider]!.allowed;
  await login.wait('bob', { n: 2, signal: AbortSignal.timeout(5000), maxWait: '1m' }).catch((err) => err instanceof Undecided && err.status);
  express().use(onExpress(login), onExpress(login, (req) => addressKey(req.ip!)));
  fastify().addHook('onRequest', onFastify(login));
  new Hono().use(onHono(login, (c) => c.req.query('user')!));
  onNest(login, (req) => req.ip).canActivate;
  // @ts-expect-error two periods
  limits.rate('login', { limit: 5 });
  // @ts-expect-error a quota has months
  limits.window('login', { perMonth: 5 });
  // @ts-expect-error Hono needs a key
  onHono(login);
  return admitted ? login.allow('bob', 3) : limits.slots('jobs', { limit: 4, ttl: '30s' }).lease('bob');
}

// @ts-expect-error the prefix is missing
new GothrottleStore({ send });
// @ts-expect-error the prefix is missing
new RateLimiterGothrottle({ ...limits, send });
// @ts-expect-error words are strings
new GothrottleStore({ send: (...words: number[]) => words, prefix: 'a' });
