// Hono: 5 requests per user and minute. While the server is unavailable this process decides by itself.
import { serve } from '@hono/node-server';
import { connect } from 'gothrottle';
import { limit } from 'gothrottle/hono';
import { Hono } from 'hono';

const limits = await connect(`redis://${process.env.ADDR}`, { failLocal: 1, script: Boolean(process.env.SCRIPT) });
const users = limits.rate('user', { perMinute: 5 });

const app = new Hono();
app.use(async (c, next) => (c.req.query('user') ? next() : c.text('?user= is missing\n', 400)));
app.use(limit(users, (c) => c.req.query('user'))); // better: from the session
app.get('/', (c) => c.text('hello\n'));
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env.PORT) });
