// Nest: 5 requests per user and minute, refused while the server is unavailable (fail closed).
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { connect } from 'gothrottle';
import { limit } from 'gothrottle/nest';

class Hello { hello() { return 'hello\n'; } } // in TypeScript: with decorators
Controller()(Hello);
Get('/')(Hello.prototype, 'hello', Object.getOwnPropertyDescriptor(Hello.prototype, 'hello'));
class App {}
Module({ controllers: [Hello] })(App);

const limits = await connect(`redis://${process.env.ADDR}`, { failClosed: true, script: Boolean(process.env.SCRIPT) });
const users = limits.rate('user', { perMinute: 5 });
const app = await NestFactory.create(App, { logger: false });
app.use((req, res, next) => (req.query.user ? next() : res.status(400).send('?user= is missing\n')));
app.useGlobalGuards(limit(users, (req) => req.query.user)); // better: from the session
await app.listen(Number(process.env.PORT), '127.0.0.1');
