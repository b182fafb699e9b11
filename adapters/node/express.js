'use strict';
const { addressKey } = require('./index.js');

// Returns a middleware: it answers 429 after a denial. The key is the client's address by default.
exports.limit = (limiter, key = (req) => addressKey(req.ip)) => async (req, res, next) => {
  try {
    const result = await limiter.allow(key(req));
    res.set(result.headers);
    if (result.allowed) return next();
    return res.status(result.status).send(`${result.message}\n`);
  } catch (err) {
    return next(err);
  }
};
