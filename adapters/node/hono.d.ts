import type { Context, MiddlewareHandler } from 'hono';
import type { Counted } from './index.js';

/** A middleware that answers 429 after a denial, and 503 if nobody could decide. */
export declare function limit(limiter: Counted, key: (c: Context) => string | Promise<string>): MiddlewareHandler;
