import { type IRateLimiterStoreOptions, RateLimiterStoreAbstract } from 'rate-limiter-flexible';
import type { Options } from './call.js';

/** A limiter with the verbs of rate-limiter-flexible. While the server cannot decide, its insuranceLimiter does. */
export declare class RateLimiterGothrottle extends RateLimiterStoreAbstract {
  constructor(options: RateLimiterGothrottleOptions);
}

export type RateLimiterGothrottleOptions = Omit<IRateLimiterStoreOptions, 'storeClient' | 'keyPrefix'>
  & Pick<Options, 'send' | 'timeout' | 'log'> & {
    /** The name of the limiter. Limiters with one keyPrefix share their points. */
    keyPrefix: string;
  };
