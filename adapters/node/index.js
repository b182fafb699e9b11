'use strict';
const { once } = require('node:events');
const { isIPv6 } = require('node:net');
const { asker, Undecided } = require('./call.js');
const { hold, resume } = require('./hold.js');
const { Counted, Slots } = require('./limiter.js');
const { Local } = require('./local.js');
const { Result } = require('./result.js');
const { Server } = require('./server.js');

const FIRST_CONNECTION = 1000; // ms: so long connect() waits for it

// Limiters over one connection.
class Limits {
  constructor(server, close, options) {
    Object.assign(this, { server, options, prefix: options.prefix ?? '', leases: new Set() });
    this.closing = close;
    this.local = new Local(); // decides for failLocal
  }

  rate(name, limit) { return new Counted(this, 'rate', name, limit); }

  window(name, limit) { return new Counted(this, 'window', name, limit); }

  quota(name, limit) { return new Counted(this, 'quota', name, limit); }

  slots(name, limit) { return new Slots(this, 'slots', name, limit); }

  // Takes all parts or none. each has the results of the parts, decider is the index of the one that decided.
  async all(...parts) {
    const [replies, more] = await this.server.decide(parts).then((replies) => [replies], (err) => parts[0].limiter.failed(err, parts));
    const each = parts.map(({ limiter }, i) => new Result(limiter, replies[i], more));
    const decider = replies.decider ?? decides(each);
    return new Result(parts[decider].limiter, replies[decider], { ...more, decider, each });
  }

  // Takes units of all parts or none until their cost is known: see Hold.
  hold(parts, options) { return hold(this, parts, options); }

  // Returns the hold of a ticket, to end it in this process.
  resume(ticket, parts, options) { return resume(this, ticket, parts, options); }

  // Releases the leases and closes the connection that connect() made.
  async close() {
    await Promise.allSettled([...this.leases].map((lease) => [lease.stop(), lease.release()][1]));
    await this.closing?.();
  }
}

// The one with the longest wait, or the least remaining.
function decides(each) {
  const denied = each.filter(({ allowed }) => !allowed);
  const most = (list, by) => each.indexOf(list.reduce((a, b) => (by(b) > by(a) ? b : a)));
  return denied.length > 0 ? most(denied, (r) => r.retryAfter) : most(each, (r) => -r.remaining);
}

// Returns limiters over a server: a URL, a client of node-redis or ioredis, a function that sends words, or memory:, which
// decides in this process, for tests. It doesn't wait for a server that is unavailable.
async function connect(to, options = {}) {
  if (to === 'memory:') return new Limits(new Local(1), undefined, options);
  const own = typeof to === 'string' ? open(to) : undefined;
  const about = typeof to === 'function' ? { send: to } : { client: own?.client ?? to };
  const ask = asker({ ...options, ...about });
  const { client } = about;
  const unhear = client && hear(client, ask.unavailable);
  await (own?.ready ?? ready(client));
  const limits = new Limits(new Server(ask), own?.close ?? unhear, options);
  if (!options.script) await checked(ask, limits);
  return limits;
}

const heard = new WeakMap(); // client -> what its errors call. It always has one listener: without one, an error ends the process

function hear(client, unavailable) {
  if (!heard.has(client)) {
    heard.set(client, new Set());
    client.on('error', (err) => { for (const each of heard.get(client)) each(err); });
  }
  heard.get(client).add(unavailable);
  return () => heard.get(client).delete(unavailable);
}

// Waits for a connection that is being made.
async function ready(client) {
  if (client?.isReady === false || /^connect/.test(client?.status)) await within(FIRST_CONNECTION, once(client, 'ready').catch(() => {}));
  // A cluster of ioredis connects to a node by its first call, and refuses others meanwhile.
  const idle = typeof client?.nodes === 'function' ? client.nodes('master').filter(({ status }) => status === 'wait') : [];
  await within(FIRST_CONNECTION, Promise.all(idle.map((node) => node.connect().catch(() => {}))));
}

// Throws if the server doesn't have the module.
async function checked(ask, limits) {
  const reply = await within(FIRST_CONNECTION, Promise.resolve().then(() => ask.send('COMMAND', 'INFO', 'GO.THROTTLE'))).catch(() => undefined);
  if (!Array.isArray(reply) || reply[0] !== null) return;
  await limits.close();
  throw new Error('the server does not know GO.THROTTLE: load the module gothrottle, or pass script: true');
}

function within(ms, promise) {
  let timer;
  const end = new Promise((resolve) => { timer = setTimeout(resolve, ms); });
  return Promise.race([promise, end]).finally(() => clearTimeout(timer));
}

// Opens a connection by the library that is installed.
function open(url) {
  const library = installed();
  if (!library.Redis) {
    const client = library.createClient({ url, disableOfflineQueue: true, pingInterval: 1000, socket: {
      connectTimeout: 1000, socketTimeout: 2000, reconnectStrategy: (tries) => Math.min(50 * 2 ** tries, 2000) } });
    const ready = within(FIRST_CONNECTION, client.connect().catch(() => {}));
    return { client, ready, close: async () => (client.destroy ? client.destroy() : client.disconnect()) };
  }
  const client = new library.Redis(url, { enableOfflineQueue: false, maxRetriesPerRequest: 0, connectTimeout: 1000, socketTimeout: 2000 });
  const ready = within(FIRST_CONNECTION, new Promise((resolve) => { client.once('ready', resolve); }));
  return { client, ready, close: async () => client.disconnect() };
}

function installed() {
  try {
    return require('redis');
  } catch {
    try {
      return require('ioredis');
    } catch (cause) {
      throw new Error('install a client: npm install redis', { cause });
    }
  }
}

// Returns the key of a client's address: the first 64 bits of an IPv6 address, of which one client often has all the others.
function addressKey(address) {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped || !isIPv6(address)) return mapped ? mapped[1] : address;
  const [head, tail] = address.split('%')[0].split('::').map((half) => (half === '' ? [] : half.split(':')));
  const groups = tail ? [...head, ...Array(8 - head.length - tail.length).fill('0'), ...tail] : head;
  const first = groups.slice(0, 4).map((group) => parseInt(group, 16).toString(16)).join(':');
  return `${first.replace(/(^|:)0(:0)*$/, '')}::/64`;
}

module.exports = { connect, addressKey, Undecided };
