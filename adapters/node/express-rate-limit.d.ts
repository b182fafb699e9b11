import type { ClientRateLimitInfo, Options as LimiterOptions, Store } from 'express-rate-limit';
import type { Options } from './call.js';

export declare class GothrottleStore implements Store {
  constructor(options: Options);
  readonly prefix: string;
  init(options: LimiterOptions): void;
  increment(key: string): Promise<ClientRateLimitInfo>;
  decrement(key: string): Promise<void>;
  get(key: string): Promise<ClientRateLimitInfo | undefined>;
  resetKey(key: string): Promise<void>;
}
