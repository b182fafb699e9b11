import type { Request, RequestHandler } from 'express';
import type { Counted } from './index.js';

/** A middleware that answers 429 after a denial, and 503 if nobody could decide. key is the client's address by default. */
export declare function limit(limiter: Counted, key?: (req: Request) => string): RequestHandler;
