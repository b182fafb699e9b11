'use strict';
const { addressKey } = require('./index.js');

// Returns a hook, such as for onRequest: it answers 429 after a denial. The key is the client's address by default.
exports.limit = (limiter, key = (req) => addressKey(req.ip)) => async (req, reply) => {
  const result = await limiter.allow(key(req));
  reply.headers(result.headers);
  return result.allowed ? undefined : reply.code(result.status).send(`${result.message}\n`);
};
