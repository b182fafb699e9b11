// Express with node-redis: 5 requests per user and minute. Requests go on while the server is away (fail open).
import { createHash } from 'node:crypto';
import { createClient } from 'redis';
import { check, log, script, serve } from './app.js';

const server = createClient({
  url: `redis://${process.env.ADDR}`,
  disableOfflineQueue: true, // without it, calls wait for ever while there is no connection
  pingInterval: 1000, // a connection that is silent for 2 s is replaced: without a strategy the client would end
  socket: { socketTimeout: 2000, reconnectStrategy: (tries) => Math.min(50 * 2 ** tries, 2000) }, // ms
});
server.on('error', log);
server.once('ready', () => check(server.sendCommand(['COMMAND', 'INFO', 'GO.THROTTLE'])));
server.connect(); // is not awaited: it goes on trying while the server is away

const sha = script && createHash('sha1').update(script).digest('hex');
async function call(key, ...words) {
  if (!script) return server.sendCommand(['GO.THROTTLE', key, ...words]);
  const rest = ['1', key, 'GO.THROTTLE', ...words];
  return server.sendCommand(['EVALSHA', sha, ...rest]).catch((err) => {
    if (!err.message.startsWith('NOSCRIPT')) throw err;
    return server.sendCommand(['EVAL', script, ...rest]);
  });
}

let late = false; // a call has no reply, so none is sent: each write restarts the socketTimeout, which would never end
const take = (user, units) => new Promise((resolve, reject) => {
  if (late) throw new Error('no call is sent while another has no reply');
  const timer = setTimeout(() => { late = true; reject(new Error('no reply within 250 ms')); }, 250);
  call(`user:${user}`, '4', '5', '60', String(units))
    .finally(() => { late = false; clearTimeout(timer); }).then(resolve, reject);
});
serve(take, true); // false: fail closed
