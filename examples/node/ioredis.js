// Express with ioredis: 5 requests per user and minute. Requests are refused while the server is away (fail closed).
import { Redis } from 'ioredis';
import { check, log, script, serve } from './app.js';

const [host, port] = process.env.ADDR.split(':');
const server = new Redis(Number(port), host, { // connects, and goes on trying while the server is away
  keyPrefix: 'user:', commandTimeout: 250, connectTimeout: 250, enableOfflineQueue: false,
  maxRetriesPerRequest: 0, // else each reconnect sends calls again that have no reply
  socketTimeout: 1000, // replaces a connection that is silent for 1 s
});
server.on('error', log);
server.once('ready', () => check(server.call('COMMAND', 'INFO', 'GO.THROTTLE')));
// call() ignores keyPrefix, and sends to any node of a cluster. A script's keys have the prefix, and find their node.
server.defineCommand('throttle', { numberOfKeys: 1, lua: "return redis.call('GO.THROTTLE', KEYS[1], unpack(ARGV))" });
server.defineCommand('byScript', { numberOfKeys: 1, lua: script || '' });
const take = (user, units) => (script ? server.byScript(user, 'GO.THROTTLE', 4, 5, 60, units) : server.throttle(user, 4, 5, 60, units));
serve(take, false); // true: fail open
