'use strict';

const seconds = (ms) => Math.ceil(ms / 1000);

// A decision. Times are milliseconds.
exports.Result = class Result {
  #by;

  constructor(by, [limited, limit, remaining, retry, reset], more) {
    this.allowed = limited === 0;
    this.limit = limit;
    this.remaining = remaining;
    this.retryAfter = this.allowed ? 0 : retry < 0 ? Infinity : retry;
    this.resetAfter = reset;
    this.source = 'server';
    this.#by = by;
    if (more) Object.assign(this, more);
  }

  // What an HTTP response should have: 429 after a denial, 503 if that is because nobody could decide.
  get status() { return this.allowed ? 200 : this.source === 'failed-closed' ? 503 : 429; }

  get message() { return this.source === 'failed-closed' ? 'Service unavailable' : 'Too many requests'; }

  // Retry-After, and RateLimit and RateLimit-Policy as in draft-ietf-httpapi-ratelimit-headers-11.
  get headers() {
    const headers = {};
    if (this.retryAfter > 0 && this.retryAfter < Infinity) headers['Retry-After'] = String(seconds(this.retryAfter));
    const known = (this.each ?? [this]).filter(({ source }) => source !== 'failed-open' && source !== 'failed-closed');
    if (known.length > 0) {
      headers['RateLimit-Policy'] = known.map((r) => `${r.#name()};q=${r.limit};w=${seconds(r.#by.bounds.span)}`).join(', ');
      headers.RateLimit = known.map((r) => `${r.#name()};r=${r.remaining}${r.#next()}`).join(', ');
    }
    return headers;
  }

  #name() { return JSON.stringify(this.#by.name.replace(/[^ -~]/g, '?')); }

  #next() { // the time until there is more
    const { kind, span, units } = this.#by.bounds;
    if (this.retryAfter === Infinity || this.resetAfter === 0) return '';
    return `;t=${seconds(this.retryAfter || Math.min(kind === 'rate' ? span / units : span, this.resetAfter))}`;
  }
};
