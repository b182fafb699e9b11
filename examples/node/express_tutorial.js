// Express with express-rate-limit: 5 page views per user and minute, and 3 logins per user in 15 minutes.
import express from 'express';
import { rateLimit } from 'express-rate-limit';
import { GothrottleStore } from 'gothrottle/express-rate-limit';
import { createClient } from 'redis';

const client = createClient({
  url: `redis://${process.env.ADDR}`, disableOfflineQueue: true,
  pingInterval: 1000, // a connection that is silent for 2 s is replaced
  socket: { socketTimeout: 2000, reconnectStrategy: (tries) => Math.min(50 * 2 ** tries, 2000) }, // ms
});
let reason; // such as a wrong password: the store logs only that there is no decision
client.on('error', ({ message }) => { if (message !== reason) console.error(reason = message); });
client.connect(); // is not awaited: the service starts while the server is away

const limiter = (prefix, limit, windowMs) => rateLimit({
  limit, windowMs, standardHeaders: 'draft-8', keyGenerator: (req) => req.query.user, // better: from the session
  store: new GothrottleStore({ prefix, client, failOpen: true, script: process.env.SCRIPT === '1' }),
});
const user = (req, res, next) => (typeof req.query.user === 'string' ? next() : res.status(400).send('?user= is missing\n'));

express()
  .get('/', user, limiter('page', 5, 60_000), (req, res) => res.send('hello\n'))
  .post('/login', user, limiter('login', 3, 15 * 60_000), (req, res) => res.send('welcome\n'))
  .listen(process.env.PORT, '127.0.0.1');
