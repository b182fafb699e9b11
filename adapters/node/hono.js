'use strict';

// Returns a middleware: it answers 429 after a denial. Hono doesn't know the client's address on every runtime, so key has
// no default.
exports.limit = (limiter, key) => async (c, next) => {
  const result = await limiter.allow(await key(c));
  for (const [name, value] of Object.entries(result.headers)) c.header(name, value);
  return result.allowed ? next() : c.text(`${result.message}\n`, result.status);
};
