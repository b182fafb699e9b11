// Express with node-redis: 5 requests per user and minute. Requests go on while the server is away (fail open).
import { setTimeout as sleep } from 'node:timers/promises';
import express from 'express';
import { createClient } from 'redis';

const server = createClient({
  url: `redis://${process.env.ADDR}`,
  disableOfflineQueue: true, // without it, calls wait for ever while there is no connection
  pingInterval: 1000, socket: { socketTimeout: 3000 }, // a connection that is silent for 3 s is replaced
});
server.on('error', (err) => console.error(err.message));
await server.connect();
if (!(await server.sendCommand(['COMMAND', 'INFO', 'GO.THROTTLE']))[0]) {
  throw new Error('the server does not know GO.THROTTLE: load the module gothrottle');
}
// Logs that the server cannot decide now. Other errors are faults of this program, as a key of the wrong type.
const away = (err) => { if (/^(ERR|WRONG|NOAUTH|NOPERM)/.test(err.message)) throw err; console.error(err.message); };
// limited, limit, remaining, retry_after, reset_after: see docs/commands.md. Times are seconds.
const take = (user, units = 1) => Promise.race([
  server.sendCommand(['GO.THROTTLE', `user:${user}`, '4', '5', '60', String(units)]),
  sleep(250, null, { ref: false }).then(() => { throw new Error('no reply within 250 ms'); }),
]);
// For jobs: waits as long as the server says, and up to a tenth longer, so that not all jobs come at once.
async function takeAndWait(user, units, tries = 3) {
  const reply = await take(user, units);
  if (reply[3] < 0 || tries === 1) return reply; // -1: admitted, or it never will be
  await sleep(reply[3] * (1000 + 100 * Math.random()));
  return takeAndWait(user, units, tries - 1);
}

const hello = (ask) => async (req, res) => {
  const reply = await ask(req.query.user, Math.max(1, req.query.units ?? 1)).catch(away);
  if (!reply) return res.send('hello, not counted\n'); // fail closed: res.status(503).send('try again\n')
  const [limited, limit, remaining, retry, reset] = reply;
  const more = retry > 0 ? retry : Math.min(reset, 12); // seconds until there is more: a unit drains in 12
  res.set({ 'RateLimit-Policy': `"user";q=${limit};w=60`, RateLimit: `"user";r=${remaining};t=${more}` });
  if (retry > 0) res.set('Retry-After', String(retry));
  return limited ? res.status(429).send('too many requests\n') : res.send('hello\n');
};
express().get('/', hello(take)).get('/wait', hello(takeAndWait)).listen(process.env.PORT, '127.0.0.1');
