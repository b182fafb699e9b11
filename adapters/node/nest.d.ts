import type { Counted } from './index.js';

/**
 * A guard for UseGuards or app.useGlobalGuards that answers 429 after a denial, and 503 if nobody could decide. key is the
 * client's address by default.
 */
export declare function limit(limiter: Counted, key?: (req: any) => string): { canActivate(context: any): Promise<boolean> };
