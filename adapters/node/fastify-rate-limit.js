'use strict';
const { caller } = require('./call.js');

// Returns a class for the option store. It has the windows of the framework, which counts denied requests too and compares
// with the limit by itself.
exports.gothrottleStore = function gothrottleStore(options) {
  const call = caller(options);
  return class GothrottleStore {
    constructor({ continueExceeding, exponentialBackoff }, path = '') {
      if (continueExceeding || exponentialBackoff) {
        throw new TypeError('gothrottle has neither continueExceeding nor exponentialBackoff: leave them out, or use ban');
      }
      this.prefix = `gothrottle:fastify:${options.prefix}:${path}`;
    }

    child(route) {
      const { method, url } = route.routeInfo ?? {};
      // Limiters of createRateLimit() and rateLimit() have no route. Their limits keep them apart. A function is NaN here.
      const limits = [route.max, route.timeWindow].map(Number);
      return new GothrottleStore(route, url === undefined ? `${limits.join('/')}:` : `${method}${url}:`);
    }

    incr(key, callback, window) { this.count(key, window, 1).then((res) => callback(null, res), callback); }

    read(key, callback, window) { this.count(key, window, 0).then((res) => callback(null, res), callback); }

    async count(key, window, units) {
      const [, limit, remaining, , reset] = await call('GO.QUOTA', this.prefix + key, 1e12, window, units, 'MS') ?? [0, 0, 0, -1, 0];
      return { current: limit - remaining, ttl: reset };
    }
  };
};
