// The service of node_redis.js and ioredis.js: GET /?user=bob, and GET /wait for jobs.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import express from 'express';

// The text of gothrottle.lua, if SCRIPT names the file: for a server without the module.
export const script = process.env.SCRIPT && readFileSync(process.env.SCRIPT, 'utf8');

let away = false;
export function log(err) { // once, and not for each request
  if (!away) console.error(`no decision: ${err.message}`);
  away = true;
}
function back() {
  if (away) console.error('the server decides again');
  away = false;
}

// Ends a program whose server does not have the module. A failing call shows that the server is away.
export async function check(info) {
  const known = script || await info.then((reply) => reply[0], (err) => { log(err); return 'perhaps'; });
  if (!known) throw new Error('the server does not know GO.THROTTLE: load the module gothrottle');
}

// take(user, units) returns limited, limit, remaining, retry_after, reset_after: see docs/commands.md. Times are seconds.
export function serve(take, failOpen) {
  // For jobs: waits as long as the server says, and up to a tenth longer, so that not all jobs come at once.
  async function takeAndWait(user, units, tries = 3) {
    const reply = await take(user, units);
    if (reply[3] < 0 || tries === 1) return reply; // -1: admitted, or it never will be
    await sleep(reply[3] * (1000 + 100 * Math.random()));
    return takeAndWait(user, units, tries - 1);
  }
  const hello = (ask) => async (req, res) => {
    const { user, units = 1 } = req.query;
    if (typeof user !== 'string') return res.status(400).send('?user= is missing\n');
    const reply = await ask(user, Math.max(1, units)).catch((err) => {
      if (/^(ERR (?!max number)|WRONG|NOAUTH|NOPERM)/.test(err.message)) throw err; // a fault of this program
      log(err);
    });
    if (!reply) return failOpen ? res.send('hello, not counted\n') : res.status(503).send('try again\n');
    back();
    const [limited, limit, remaining, retry, reset] = reply;
    const more = retry > 0 ? retry : Math.min(reset, 12); // seconds until there is more: a unit drains in 12
    res.set({ 'RateLimit-Policy': `"user";q=${limit};w=60`, RateLimit: `"user";r=${remaining};t=${more}` });
    if (retry > 0) res.set('Retry-After', String(retry));
    return limited ? res.status(429).send('too many requests\n') : res.send('hello\n');
  };
  express().get('/', hello(take)).get('/wait', hello(takeAndWait)).listen(process.env.PORT, '127.0.0.1');
}
