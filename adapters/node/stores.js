'use strict';
const { Undecided } = require('./call.js');

// Stores for limiters that frameworks have. Those of Express and Fastify count denied requests, too, and compare with the limit
// by themselves: what counts is a quota without an end.
const counter = (limits, name, per) => limits.quota(name, { limit: 1e12, per, coalesce: false });

function used({ source, cause, limit, remaining }) {
  if (source === 'failed-closed') throw new Undecided(503, cause);
  return source === 'failed-open' ? 0 : limit - remaining;
}

exports.expressStore = (limits, name) => {
  let hits;
  const info = (result) => ({ totalHits: Math.max(1, used(result)), resetTime: new Date(Date.now() + result.resetAfter) });
  return {
    prefix: `${limits.prefix}${name}:`, // the framework warns if two limiters share keys
    init({ windowMs }) { hits = counter(limits, name, windowMs); },
    async increment(key) { return info(await hits.allow(key)); },
    // Older versions of the framework do not catch an error of this call, and the process would end.
    async decrement(key) { await hits.refund(key).catch(() => {}); },
    async get(key) {
      const result = await hits.peek(key);
      return used(result) > 0 ? info(result) : undefined;
    },
    resetKey: (key) => hits.reset(key),
  };
};

exports.fastifyStore = (limits, name) => class Store {
  constructor({ continueExceeding, exponentialBackoff }, path = '') {
    if (continueExceeding || exponentialBackoff) {
      throw new TypeError('gothrottle has neither continueExceeding nor exponentialBackoff: leave them out, or use ban');
    }
    this.path = path;
  }

  child(route) {
    const { method, url } = route.routeInfo ?? {};
    // Limiters of createRateLimit() and rateLimit() have no route. Their limits keep them apart. A function is NaN here.
    return new Store(route, url === undefined ? `${[route.max, route.timeWindow].map(Number).join('/')}:` : `${method}${url}:`);
  }

  incr(key, callback, window) { this.#ask('allow', key, window).then((res) => callback(null, res), callback); }

  read(key, callback, window) { this.#ask('peek', key, window).then((res) => callback(null, res), callback); }

  async #ask(verb, key, window) {
    const result = await counter(limits, name, window)[verb](this.path + key);
    return { current: used(result), ttl: result.resetAfter };
  }
};

exports.nestStorage = (limits, name) => ({
  async increment(key, per, limit, blockDuration) {
    const result = await limits.rate(name, { limit, per, lockout: blockDuration || undefined }).allow(key);
    return {
      totalHits: used(result) + (result.allowed ? 0 : 1),
      timeToExpire: Math.ceil(result.resetAfter / 1000),
      isBlocked: !result.allowed,
      timeToBlockExpire: Math.ceil(result.retryAfter / 1000),
    };
  },
});
