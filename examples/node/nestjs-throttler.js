// @nestjs/throttler with GCRA in the server. The class is all you need of this file.
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import server from './server.js';

export class GothrottleStorage {
  async increment(key, ttl, limit, blockDuration) {
    const block = blockDuration > 0 ? ['LOCKOUT', blockDuration] : [];
    const words = [`gothrottle:${key}`, limit - 1, limit, ttl, 1, 'MS', ...block];
    const reply = await server.call('GO.THROTTLE', ...words).catch((err) => {
      if (/^(ERR|WRONG|NOAUTH|NOPERM)/.test(err.message)) throw err; // a fault of this program
      return [0, limit, limit, -1, 0]; // fail open: the server cannot decide now
    });
    const [limited, , remaining] = reply;
    const [timeToBlockExpire, timeToExpire] = reply.slice(3).map((ms) => Math.ceil(ms / 1000));
    return { totalHits: limit - remaining + limited, timeToExpire, isBlocked: limited === 1, timeToBlockExpire };
  }
}

class Hello { hello() { return 'hello\n'; } }
Controller()(Hello);
Get('/')(Hello.prototype, 'hello', Object.getOwnPropertyDescriptor(Hello.prototype, 'hello'));
class App {}
Module({
  imports: [ThrottlerModule.forRoot({
    throttlers: [{ limit: 5, ttl: 60_000 }], getTracker: (req) => req.query.user, storage: new GothrottleStorage(),
  })],
  controllers: [Hello], providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})(App);
await (await NestFactory.create(App)).listen(process.env.PORT, '127.0.0.1');
