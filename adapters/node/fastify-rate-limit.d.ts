import type { FastifyRateLimitStoreCtor } from '@fastify/rate-limit';
import type { Options } from './call.js';

/** Returns a class for the option store. */
export declare function gothrottleStore(options: Options): FastifyRateLimitStoreCtor;
