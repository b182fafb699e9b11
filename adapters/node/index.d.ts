/** A time: whole milliseconds, or a text such as "250ms", "5s", "15m", "1h" or "1d"; up to 100 years. */
export type Time = number | string;

/** While the server cannot decide: what allow, wait, hold, lease and all do instead of rejecting with an Undecided. */
export interface Fallback {
  /** Admit. */
  failOpen?: boolean;
  /** Deny, for a second. */
  failClosed?: boolean;
  /** Decide in this process by this share of the limit: above 0, at most 1. */
  failLocal?: number;
}

interface Calls extends Fallback {
  /** How long a call waits for its reply, in milliseconds: 250 if not given. */
  timeout?: number;
  /** Repeat a denial in this process until its retryAfter. Refunds by other processes are noticed late. */
  rememberDenials?: boolean;
  /** Make one command of concurrent calls for one key: true if not given. */
  coalesce?: boolean;
}

export interface Options extends Calls {
  /** Begins all keys, before the limiter's name. */
  prefix?: string;
  /** Call the Lua script that is in this package, or another text of it, for servers without the module. */
  script?: boolean | string;
  /** Gets one line when the server becomes unavailable, and one when it decides again: console.error if not given. */
  log?: (line: string) => void;
}

/** Exactly one of these: units in a time, or limit and per. Units are whole numbers from 1 to 10^12. */
type Per = { perSecond: number } | { perMinute: number } | { perHour: number } | { perDay: number } | { limit: number; per: Time };

/** Units drain one by one. burst is how many fit at once: as many as drain in the period if not given. A denial begins a lockout. */
export type RateLimit = Per & Calls & { burst?: number; lockout?: Time };

/** In any span of the period, no more than the limit. exact keeps an entry for each microsecond with calls, whatever the limit. */
export type WindowLimit = Per & Calls & { exact?: boolean };

/** A window begins with its first call, or with the calendar of a time zone. Months are UTC's if there is no zone. */
export type QuotaLimit = (Per | { perMonth: number }) & Calls & { zone?: string };

/** Concurrent holders, and after how long a slot lapses that isn't renewed. */
export type SlotsLimit = Calls & { limit: number; ttl: Time };

/** A decision. A denial isn't an error. Times are milliseconds. */
export interface Result {
  readonly allowed: boolean;
  /** Units that fit at once. */
  readonly limit: number;
  /** Whole units left, 0 to limit. */
  readonly remaining: number;
  /** How long until the same call is admitted: 0 if it was, Infinity if never. */
  readonly retryAfter: number;
  /** How long until nothing is in use. */
  readonly resetAfter: number;
  /** Who decided. */
  readonly source: 'server' | 'denials' | 'failed-open' | 'failed-closed' | 'failed-local';
  /** Why the server didn't. */
  readonly cause?: unknown;
  /** For an HTTP response: 200; 429 after a denial; 503 if failClosed denied. */
  readonly status: number;
  /** For an HTTP response that isn't 200: its text. */
  readonly message: string;
  /** For an HTTP response: RateLimit, RateLimit-Policy, and Retry-After after a denial. */
  readonly headers: Record<string, string>;
}

export interface AllResult extends Result {
  readonly each: Result[];
  /** The index of the part that decided. */
  readonly decider: number;
}

/** A slot that this process holds, if it is allowed. It renews itself until release(). */
export interface Lease extends Result {
  readonly id: string;
  /** Is aborted if the slot is lost. */
  readonly signal: AbortSignal;
  /** Keeps the slot for another ttl. Returns whether it was still held. */
  renew(): Promise<boolean>;
  release(): Promise<void>;
}

/** Units that are taken until their cost is known, if it is allowed. They lapse if this process dies. */
export interface Hold extends Result {
  /**
   * Charges the cost in place of what was held. It repeats the call until there is a reply or the hold lapses. counted: once.
   * unknown: nobody knows, so don't charge again. refused: the hold was lost, and there is no room for another.
   */
  settle(cost: number): Promise<'counted' | 'unknown' | 'refused'>;
  /** Secret words by which resume() finds the hold until it lapses. They are empty if the server holds nothing. */
  readonly ticket: string;
  /** Gives the units back, unless settle() was called. */
  release(): Promise<void>;
}

export interface HoldOptions {
  /** Without a renewal the hold lapses after this: "30s" if not given. */
  ttl?: Time;
  /** For so long it is renewed: "1h" if not given. With 0 nothing renews it, and close() leaves it to who has its ticket. */
  deadline?: Time;
}

export interface Part { readonly key: string }

interface Limiter {
  readonly name: string;
  /** Deletes the key: nothing is in use afterwards. */
  reset(key: string): Promise<void>;
}

/** A rate, window or quota. Units are 1 if not given. */
export interface Counted extends Limiter {
  /** Takes units, all or none. */
  allow(key: string, units?: number): Promise<Result>;
  /** Changes nothing. allowed: a unit remains. retryAfter is 0 unless more is in use than the limit, or a lockout runs. */
  peek(key: string): Promise<Result>;
  /** Gives units back, at most those in use. */
  refund(key: string, units?: number): Promise<Result>;
  /** Charges a difference, past the limit if need be, or gives it back if it is below 0. */
  settle(key: string, difference: number): Promise<Result>;
  /** Waits until units are taken. Denied if that would take longer than maxWait. A signal that is aborted rejects with its reason. */
  wait(key: string, options?: { n?: number; signal?: AbortSignal; maxWait?: Time }): Promise<Result>;
  /** Takes units until their cost is known. Calls that don't hold don't see them. */
  hold(key: string, units: number, options?: HoldOptions): Promise<Hold>;
  /** A part of all(). share: it may use that many times what the part before it has left. */
  part(key: string, units?: number, options?: { share?: number }): Part;
}

export interface Slots extends Limiter {
  lease(key: string): Promise<Lease>;
  /** A part of all(): a slot for a holder. Nothing renews it. */
  part(key: string, holder: string, options?: { share?: number }): Part;
  /** Gives back the slot of a holder that part() named. Returns whether it was held. */
  release(key: string, holder: string): Promise<boolean>;
}

export interface Limits {
  /** Keys are name:key, as the Go client's. Limiters with one name share their keys, so give each its own. */
  rate(name: string, limit: RateLimit): Counted;
  window(name: string, limit: WindowLimit): Counted;
  quota(name: string, limit: QuotaLimit): Counted;
  slots(name: string, limit: SlotsLimit): Slots;
  /** Takes all parts or none, at most 32. In a cluster their keys need one hash tag. */
  all(...parts: Part[]): Promise<AllResult>;
  /** Holds units of all parts or of none, at most 16; settle() charges each the cost. In a cluster their keys need one hash tag. */
  hold(parts: Part[], options?: HoldOptions): Promise<Hold>;
  /** The hold of a ticket, of any client, to end it here: with its parts, whatever their units, and its ttl. Its numbers aren't known. */
  resume(ticket: string, parts: Part[], options?: { ttl?: Time }): Hold;
  /** Releases the leases and ends the connection that connect() opened. */
  close(): Promise<void>;
}

/** The error of a call that nobody decided. The server's text is the cause, so that no response shows it. */
export declare class Undecided extends Error {
  /** 503: the server is unavailable. 500: the program or the set-up is wrong. */
  readonly status: 500 | 503;
}

/**
 * Returns limiters over a server: redis:// or rediss:// (by the client that is installed: redis or ioredis); a client of
 * node-redis 4 to 6 or ioredis 5 to 6, single or cluster; a function that sends words once; or memory:, which decides in
 * this process, for tests. It doesn't wait for a server that is unavailable, and rejects if the server lacks the module.
 */
export declare function connect(to: string | Client | ((...words: string[]) => unknown), options?: Options): Promise<Limits>;

interface Client { sendCommand(...words: any[]): unknown; on(event: any, listener: any): unknown }

/** The key of a client's address: an IPv4 address, or the first 64 bits of an IPv6 address, of which one client often has all. */
export declare function addressKey(address: string): string;
