'use strict';
const { HttpException } = require('@nestjs/common');
const { addressKey } = require('./index.js');

// Returns a guard for @UseGuards or app.useGlobalGuards: it answers 429 after a denial. The key is the client's address by
// default.
exports.limit = (limiter, key = (req) => addressKey(req.ip)) => ({
  async canActivate(context) {
    const http = context.switchToHttp();
    const result = await limiter.allow(key(http.getRequest()));
    for (const [name, value] of Object.entries(result.headers)) http.getResponse().header(name, value);
    if (!result.allowed) throw new HttpException(result.message, result.status);
    return true;
  },
});
