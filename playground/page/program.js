// The program: the handlers of the module, compiled to WebAssembly. They decide every call; the page only draws. Times of
// the page are ms since start, which is the instant at which every script begins.
import './wasm_exec.js';

let program;

// rate(count, period in ms) makes a rate that of all that follows, and returns the smallest limit that denies no call of the
// log. decide(limit) returns how many calls and users a limit denies, the user with the most denied calls, and how many these are.
// recommend(percent of users) returns the limit that denies at most these, and the robots, which it leaves out.
// commands is what COMMAND DOCS says.
export let commands = [], rate, decide, recommend;

// ready is when the program has arrived. Before that, scripts have no replies, and pictures no calls.
export const ready = (async () => {
  const go = new globalThis.Go();
  const file = await fetch(new URL('gothrottle.wasm', import.meta.url));
  // Not all hosts send the type that instantiateStreaming wants.
  const { instance } = await WebAssembly.instantiate(await file.arrayBuffer(), go.importObject);
  go.run(instance);
  program = globalThis.gothrottle;
  ({ rate, decide, recommend } = program);
  commands = Object.entries(pairs(run([[0, 'COMMAND DOCS']])[0])).map(([name, docs]) => ({ name: name.toUpperCase(), ...pairs(docs) }));
})();

export const start = Date.UTC(2027, 0, 15, 8);

// A script has a line for each call. It always runs from its beginning, on a server without keys.
const script = (calls) => calls.map(([at, call]) => `${Math.round((start + at) * 1000)} ${call.replaceAll('\n', ' ')}`).join('\n');

// pairs makes an object of a reply that is a map.
export const pairs = (flat) => Object.fromEntries(flat.flatMap((name, i) => (i % 2 ? [] : [[name, flat[i + 1]]])));

// run returns the replies of calls, [time, text] each: integers, texts, null, arrays of these, or { error }.
export const run = (calls) => program?.run(script(calls)) ?? [];

// print returns the last reply as redis-cli prints it.
export const print = (calls) => program.print(script(calls));

// readLog hands a log over: the times of each user's calls, in ms since the Unix epoch.
export const readLog = (users) => program.read(users.map((times) => new Uint8Array(Float64Array.from(times).buffer)));
