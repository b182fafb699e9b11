import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Counted } from './index.js';

/** A hook, such as for onRequest, that answers 429 after a denial, and 503 if nobody could decide. key is the client's address by default. */
export declare function limit(limiter: Counted, key?: (req: FastifyRequest) => string):
  (req: FastifyRequest, reply: FastifyReply) => Promise<unknown>;
