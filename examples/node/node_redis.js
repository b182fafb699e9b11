// Express with node-redis: 5 requests per user and minute. Requests go on while the server is away (fail open).
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';
import { check, log, serve } from './app.js';

const server = createClient({
  url: `redis://${process.env.ADDR}`,
  disableOfflineQueue: true, // without it, calls wait for ever while there is no connection
  pingInterval: 1000, // a connection that is silent for 3 s is replaced: without a strategy the client would end
  socket: { socketTimeout: 3000, reconnectStrategy: (tries) => Math.min(50 * 2 ** tries, 2000) }, // ms
});
server.on('error', log);
server.once('ready', () => check(server.sendCommand(['COMMAND', 'INFO', 'GO.THROTTLE'])));
server.connect(); // is not awaited: it goes on trying while the server is away

const take = (user, units) => Promise.race([
  server.sendCommand(['GO.THROTTLE', `user:${user}`, '4', '5', '60', String(units)]),
  sleep(250, null, { ref: false }).then(() => { throw new Error('no reply within 250 ms'); }),
]);
serve(take, true); // false: fail closed
