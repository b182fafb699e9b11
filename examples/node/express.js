// Express: 5 requests per user and minute. Requests go on while the server is unavailable (fail open).
import express from 'express';
import { connect } from 'gothrottle';
import { limit } from 'gothrottle/express';

const limits = await connect(`redis://${process.env.ADDR}`, { failOpen: true, script: Boolean(process.env.SCRIPT) });
const users = limits.rate('user', { perMinute: 5 });
const user = (req) => req.query.user; // better: from the session

express()
  .use((req, res, next) => (typeof user(req) === 'string' ? next() : res.status(400).send('?user= is missing\n')))
  .get('/', limit(users, user), (req, res) => res.send('hello\n'))
  .get('/wait', async (req, res) => { // for jobs: returns when there is room, if that is soon
    const { allowed, status, headers } = await users.wait(user(req), { n: Number(req.query.units ?? 1), maxWait: '1m' });
    res.status(status).set(headers).send(allowed ? 'hello\n' : 'too many requests\n');
  })
  .listen(process.env.PORT, '127.0.0.1');
