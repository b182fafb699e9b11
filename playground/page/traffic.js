// When calls come. The text of a pattern, as in "bursts 15 6", is its name and its numbers.
export const most = 2000; // calls of a scene

export const patterns = {
  steady: ['Steady', [['Calls per second', 0.001, 1000, 4]]],
  bursts: ['Bursts', [['Calls in a burst', 1, 500, 15], ['Seconds between bursts', 0.01, 86400, 6]]],
  clients: ['Two clients: one steady, one in bursts', [['Calls per second', 0.001, 1000, 2], ['Calls in a burst', 1, 500, 8], ['Seconds between bursts', 0.01, 86400, 5]]],
  edge: ['Just before and after the end of a fixed window', []],
  attack: ['A guesser for some seconds, then a person', [['Guesses per second', 0.1, 100, 4], ['Seconds', 0.5, 3600, 4]]],
  budget: ['An estimate for each request, and its settlement', [['Estimated units', 1, 1e9, 300], ['Seconds between requests', 0.1, 3600, 1]]],
  mixed: ['Calm, a burst, a pause and an overload', []],
  lanes: ['Two calls, a burst, an overload', []],
  share: ['Two tenants, SHARE in the second half', []],
  none: ['None: I call', []],
};

// read returns the name and the numbers of a pattern's text, and whether all of them are possible.
export function read(text) {
  const [name, ...words] = text.trim().split(/\s+/);
  const known = Object.hasOwn(patterns, name);
  const [, fields] = patterns[known ? name : 'steady'];
  const numbers = fields.map(([, low, high, usual], i) => (words[i] === undefined ? usual : Math.min(Math.max(Number(words[i]) || 0, low), high)));
  return { name: known ? name : 'steady', numbers, ok: known && words.length <= fields.length && words.every((word, i) => Number(word) === numbers[i]) };
}

// steps returns the calls of a pattern in order of time: at in ms, and who calls. aim is the limiter that the edge is for.
export function steps(text, aim, end) {
  const { name, numbers: [a, b, c] } = read(text);
  const list = [];
  const add = (at, client = 0, more) => { if (at <= end && list.length < most) list.push({ at: Math.round(at * 1000) / 1000, client, ...more }); };
  const steady = (rate, from = 0, client = 0) => { for (let i = 0; from + (i * 1000) / rate <= end && i < most; i++) add(from + (i * 1000) / rate, client); };
  const bursts = (size, every, client) => { for (let at = 500; at <= end && list.length < most; at += every * 1000) for (let i = 0; i < size; i++) add(at, client); };
  if (name === 'steady') steady(a);
  if (name === 'bursts') bursts(a, b, 0);
  if (name === 'clients') { bursts(b, c, 1); steady(a); }
  if (name === 'attack') {
    for (let i = 0; i < a * b; i++) add(1000 + (i * 1000) / a);
    steady(0.5, 1000 + b * 1000 + 500, 1);
  }
  if (name === 'edge') edge(aim, end, add);
  if (name === 'budget') budget(a, b * 1000, end, add);
  if (name === 'mixed') mixed(add);
  if (name === 'lanes') {
    for (let i = 0; i < 10; i++) add(i < 2 ? 500 : 2500);
    steady(4, 4000);
  }
  if (name === 'share') share(add, end);
  return list.sort((x, y) => x.at - y.at);
}

// edge begins a fixed window with one call, sends the rest of the limit just before its end, and a whole limit just after.
function edge({ limit = 10, period = 5000 }, end, add) {
  const margin = Math.min(Math.max(period / 25, 1), 250);
  const calls = Math.min(limit, 200);
  for (let begin = 500; begin <= end; begin += 3 * period) {
    for (let i = 0; i < 2 * calls; i++) add(begin + (i >= calls ? period + margin : i ? period - margin : 0));
  }
}

// budget takes an estimate for each request. A while later the true cost is known: the rest is given back, or charged past
// the limit.
function budget(estimate, every, end, add) {
  const costs = [0.6, 1.7, 0.9, 0.4, 2.2, 1.1];
  for (let i = 0, at = 500; at <= end && i < 60; i++, at += every) {
    const rest = Math.round(estimate * costs[i % costs.length]) - estimate;
    add(at, 0, { quantity: estimate, id: i + 1 });
    if (rest) add(at + every * 0.6, 0, { quantity: rest, option: rest > 0 ? 'FORCE' : undefined, settles: i + 1 });
  }
}

// mixed is a call every 2.5 s, 16 calls at one instant, a pause, 2 calls a second for 20 s, and a call every 2.5 s again.
function mixed(add) {
  const every = (ms, from, to) => { for (let at = from; at < to; at += ms) add(at); };
  every(2500, 500, 20000);
  for (let i = 0; i < 16; i++) add(24500);
  every(500, 54250, 74000);
  every(2500, 76500, 90000);
}

// share is a tenant that asks 3 times a second, and after a quarter one that asks every 2.5 s. With SHARE after the half.
function share(add, end) {
  const more = (at) => (at >= end * 0.55 ? { more: 'SHARE 1' } : {});
  for (let at = 500; at <= end; at += 1000 / 3) add(at, 1, more(at));
  for (let at = end / 4 + 100; at <= end; at += 2500) add(at, 0, more(at));
}
