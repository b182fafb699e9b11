// tsc --strict checks this file, as an ECMAScript module and, in types.cts, as CommonJS.
import fastifyRateLimit from '@fastify/rate-limit';
import { ThrottlerModule } from '@nestjs/throttler';
import { rateLimit } from 'express-rate-limit';
import fastify from 'fastify';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { createClient } from 'redis';
import { Redis } from 'ioredis';
import { GothrottleStore } from 'gothrottle-adapters/express-rate-limit';
import { gothrottleStore } from 'gothrottle-adapters/fastify-rate-limit';
import { GothrottleStorage } from 'gothrottle-adapters/nestjs-throttler';
import { RateLimiterGothrottle } from 'gothrottle-adapters/rate-limiter-flexible';

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

// @ts-expect-error the prefix is missing
new GothrottleStore({ send });
// @ts-expect-error the prefix is missing
new RateLimiterGothrottle({ ...limits, send });
// @ts-expect-error words are strings
new GothrottleStore({ send: (...words: number[]) => words, prefix: 'a' });
