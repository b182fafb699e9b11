import type { ThrottlerStorage } from '@nestjs/throttler';
import type { Options } from './call.js';

export declare class GothrottleStorage implements ThrottlerStorage {
  constructor(options: Options);
  increment: ThrottlerStorage['increment'];
}
