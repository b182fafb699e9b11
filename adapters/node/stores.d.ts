import type { Limits } from './index.js';

// While the server is unavailable, the fallback of limits decides; failClosed and none answer 503. Names are those of limiters:
// each needs its own.

/** For express-rate-limit: rateLimit({ store }). A window ends when its last hit is taken back, for example by skipFailedRequests. */
export declare function expressStore(limits: Limits, name: string): {
  readonly prefix: string;
  init(options: { windowMs: number }): void;
  increment(key: string): Promise<{ totalHits: number; resetTime: Date }>;
  decrement(key: string): Promise<void>;
  get(key: string): Promise<{ totalHits: number; resetTime: Date } | undefined>;
  resetKey(key: string): Promise<void>;
};

interface FastifyStore {
  incr(key: string, callback: (err: Error | null, result?: { current: number; ttl: number }) => void, window: number): void;
  child(route: any): FastifyStore;
}

/**
 * For @fastify/rate-limit: { store }. It refuses continueExceeding and exponentialBackoff. Limiters of createRateLimit() and
 * rateLimit() with the same max and timeWindow share their counters.
 */
export declare function fastifyStore(limits: Limits, name: string): new (options: any) => FastifyStore;

/**
 * For @nestjs/throttler: { storage }. Calls become available one by one, and timeToExpire is when all are. After a block, only
 * those are that have drained meanwhile. A block lasts at least as long as the wait for one call. A limit of 0 is an error.
 */
export declare function nestStorage(limits: Limits, name: string): {
  increment(key: string, ttl: number, limit: number, blockDuration: number): Promise<{
    totalHits: number; timeToExpire: number; isBlocked: boolean; timeToBlockExpire: number }>;
};
