// A service for each adapter, with a limit of 5 per user and minute: node apps.js NAME. TestExamples runs them.
import 'reflect-metadata';
import fastifyRateLimit from '@fastify/rate-limit';
import { Controller, Get, Module } from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import express from 'express';
import fastify from 'fastify';
import { gothrottleStore } from 'gothrottle/fastify-rate-limit';
import { GothrottleStorage } from 'gothrottle/nestjs-throttler';
import { RateLimiterGothrottle } from 'gothrottle/rate-limiter-flexible';
import { Redis } from 'ioredis';
import { RateLimiterMemory } from 'rate-limiter-flexible';

const client = new Redis(`redis://${process.env.ADDR}`, {
  connectTimeout: 250, socketTimeout: 2000, enableOfflineQueue: false, maxRetriesPerRequest: 0,
});
client.on('error', () => {}); // the adapters log
const port = Number(process.env.PORT);

const apps = {
  async fastify() { // fails open
    const app = fastify();
    app.addHook('onRequest', async (req, res) => (req.query.user ? undefined : res.code(400).send('?user= is missing\n')));
    await app.register(fastifyRateLimit, {
      store: gothrottleStore({ client, prefix: 'app', failOpen: true }), max: 5, timeWindow: 60_000,
      keyGenerator: (req) => req.query.user,
    });
    app.get('/', async () => 'hello\n');
    await app.listen({ host: '127.0.0.1', port });
  },

  async nestjs() { // fails closed
    class Hello { hello() { return 'hello\n'; } }
    Controller()(Hello);
    Get('/')(Hello.prototype, 'hello', Object.getOwnPropertyDescriptor(Hello.prototype, 'hello'));
    class App {}
    Module({
      imports: [ThrottlerModule.forRoot({
        throttlers: [{ limit: 5, ttl: 60_000 }], getTracker: (req) => req.query.user, generateKey: (context, user) => user,
        storage: new GothrottleStorage({ client, prefix: 'app' }),
      })],
      controllers: [Hello], providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
    })(App);
    const app = await NestFactory.create(App, { logger: false });
    app.use((req, res, next) => (req.query.user ? next() : res.status(400).send('?user= is missing\n')));
    await app.listen(port, '127.0.0.1');
  },

  flexible() { // decides by itself while the server is unavailable
    const limits = { points: 5, duration: 60, blockDuration: 30, keyPrefix: 'app' };
    const limiter = new RateLimiterGothrottle({ ...limits, client, insuranceLimiter: new RateLimiterMemory(limits) });
    express().get('/', (req, res) => {
      if (!req.query.user) return res.status(400).send('?user= is missing\n');
      return limiter.consume(req.query.user).then(() => res.send('hello\n'), (denial) => {
        if (denial instanceof Error) throw denial; // without an insurance limiter
        if (denial.msBeforeNext > 0) res.set('Retry-After', String(Math.ceil(denial.msBeforeNext / 1000)));
        res.status(429).send('too many requests\n');
      });
    }).listen(port, '127.0.0.1');
  },
};
await apps[process.argv[2]]();
