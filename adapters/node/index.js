'use strict';
const { once } = require('node:events');
const { isIPv6 } = require('node:net');
const { asker, Undecided } = require('./call.js');
const { Counted, Slots } = require('./limiter.js');
const { Local } = require('./local.js');
const { Result } = require('./result.js');
const { Server } = require('./server.js');

const FIRST_CONNECTION = 1000; // ms: so long connect() waits for it

// Limiters over one connection.
class Limits {
  constructor(server, close, options) {
    Object.assign(this, { server, options, prefix: options.prefix ?? '', coalesces: options.coalesce !== false, leases: new Set() });
    this.closing = close;
    this.local = new Local(); // decides for failLocal
  }

  rate(name, limit) { return new Counted(this, 'rate', name, limit); }

  window(name, limit) { return new Counted(this, 'window', name, limit); }

  quota(name, limit) { return new Counted(this, 'quota', name, limit); }

  slots(name, limit) { return new Slots(this, 'slots', name, limit); }

  // Takes all parts or none. each has the results of the parts, decider is the index of the one that decided.
  async all(...parts) {
    const first = parts[0].limiter;
    let replies, more;
    try {
      replies = await this.server.decide(parts);
    } catch (err) {
      [replies, more] = await first.failed(err, (local) => local.decide(parts));
      if (!Array.isArray(replies[0])) replies = parts.map(({ limiter }) => replies.with(1, limiter.bounds.units));
    }
    const each = parts.map(({ limiter }, i) => new Result(limiter, replies[i], more));
    const decider = replies.decider ?? decides(each);
    return new Result(parts[decider].limiter, replies[decider], { ...more, decider, each });
  }

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
  client?.on('error', ask.unavailable);
  await (own?.ready ?? ready(client));
  const limits = new Limits(new Server(ask), own?.close, options);
  if (!options.script) await checked(ask, limits);
  return limits;
}

// Waits for a connection that is being made.
async function ready(client) {
  if (client?.isReady === false || /^connect/.test(client?.status)) await within(FIRST_CONNECTION, once(client, 'ready').catch(() => {}));
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
