import { type IRateLimiterStoreOptions, RateLimiterStoreAbstract } from 'rate-limiter-flexible';
import type { Options } from './call.js';

/**
 * A limiter with the verbs of rate-limiter-flexible. While the server cannot decide, its insuranceLimiter does.
 * set() uses its seconds only if it blocks. A penalty past the limit raises msBeforeNext, not consumedPoints.
 */
export declare class RateLimiterGothrottle extends RateLimiterStoreAbstract {
  constructor(options: RateLimiterGothrottleOptions);
}

export type RateLimiterGothrottleOptions = Omit<IRateLimiterStoreOptions, 'storeClient' | 'keyPrefix'>
  & Pick<Options, 'client' | 'send' | 'timeout' | 'log' | 'script'> & {
    /** The name of the limiter. Limiters with one keyPrefix share their points. */
    keyPrefix: string;
  };
