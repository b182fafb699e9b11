// The program: the handlers of the module, compiled to WebAssembly. They decide every call; the page only draws. Times of
// the page are ms since start, which is the instant at which every script begins.
import './wasm_exec.js';

let program;

// rate(count, period in ms) makes a rate that of all that follows, and returns the smallest limit that denies no call of the
// log. decide(limit) returns how many calls and users of the log a limit denies, and pairs of a user and its denied calls.
// recommend(percent of users) returns the limit that denies at most these, and the users it leaves out because they are robots.
// commands is the module's own table.
export let commands = [], rate, decide, recommend;

// ready is when the program has arrived. Before that, scripts have no replies, and pictures no calls.
export const ready = (async () => {
  const go = new globalThis.Go();
  const file = await fetch(new URL('gothrottle.wasm', import.meta.url));
  // Not all hosts send the type that instantiateStreaming wants.
  const { instance } = await WebAssembly.instantiate(await file.arrayBuffer(), go.importObject);
  go.run(instance);
  program = globalThis.gothrottle;
  ({ commands, rate, decide, recommend } = program);
})();

export const start = Date.UTC(2027, 0, 15, 8);

// A script has a line for each call. It always runs from its beginning, on a server without keys.
const script = (calls) => calls.map(([at, call]) => `${Math.round((start + at) * 1000)} ${call.replaceAll('\n', ' ')}`).join('\n');

// run returns the replies of calls, [time, text] each: integers, texts, null, arrays of these, or { error }.
export const run = (calls) => program?.run(script(calls)) ?? [];

// print returns the last reply as redis-cli prints it. nested says that it is a map, as that of GO.INFO.
export const print = (calls) => program.print(script(calls), /^\s*(GO\.INFO|COMMAND\s+DOCS)\b/i.test(calls.at(-1)[1]));

// readLog hands a log over: its times in ms since the Unix epoch, and who called.
export const readLog = (times, users, howMany) => program.read(new Uint8Array(times.buffer), new Uint8Array(users.buffer), howMany);
