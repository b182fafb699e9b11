// The connection that the adapters beside this file share. Calls end after 250 ms and are sent once: see ioredis.js.
import { Redis } from 'ioredis';

const [host, port] = process.env.ADDR.split(':');
const server = new Redis(Number(port), host, {
  lazyConnect: true, commandTimeout: 250, connectTimeout: 250, socketTimeout: 3000,
  enableOfflineQueue: false, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false,
});
server.on('error', (err) => console.error(err.message));
await server.connect();
if (!(await server.call('COMMAND', 'INFO', 'GO.THROTTLE'))[0]) {
  console.error('the server does not know GO.THROTTLE: load the module gothrottle');
  process.exit(1);
}
export default server;
