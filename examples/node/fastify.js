// Fastify over an ioredis client: 5 requests per user and minute, refused while the server is unavailable (fail closed).
import fastify from 'fastify';
import { connect } from 'gothrottle';
import { limit } from 'gothrottle/fastify';
import { Redis } from 'ioredis';

const client = new Redis(`redis://${process.env.ADDR}`, { enableOfflineQueue: false, maxRetriesPerRequest: 0, socketTimeout: 2000 });
const limits = await connect(client, { failClosed: true, script: Boolean(process.env.SCRIPT) });
const users = limits.rate('user', { perMinute: 5 });
const user = (req) => req.query.user; // better: from the session

const app = fastify();
app.addHook('onRequest', async (req, reply) => (typeof user(req) === 'string' ? undefined : reply.code(400).send('?user= is missing\n')));
app.get('/', { onRequest: limit(users, user) }, async () => 'hello\n');
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
