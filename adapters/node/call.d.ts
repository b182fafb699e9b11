export interface Options {
  /** A client of node-redis, ioredis or iovalkey for one server. Settings that README.md asks for must be set. */
  client?: object;
  /** Instead of client: sends the words of one command, once, and returns the reply. */
  send?: (...words: string[]) => unknown;
  /** Calls this package's Lua script in place of the module, or another one: its text. */
  script?: boolean | string;
  /** The name of the limiter. Limiters with one prefix share their counters. */
  prefix: string;
  /** How long a call may take, in milliseconds: 250 if not given. */
  timeout?: number;
  /** Whether requests go on while the server cannot decide. If not, they fail with the status 503. */
  failOpen?: boolean;
  /** Gets one line when the server goes away, and one when it decides again: console.error if not given. */
  log?: (line: string) => void;
}
