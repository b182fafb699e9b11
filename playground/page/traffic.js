// When calls come. The text of a pattern, as in "bursts 15 6", is its name and its numbers.
export const most = 2000; // calls of a scene

// calls come so many together, each so many ms.
const calls = (ms, { from = 500, times = most, together = 1, client = 0 } = {}) =>
  Array.from({ length: Math.min(times, most) }, (_, i) => ({ at: from + Math.floor(i / together) * ms, client }));

// A pattern has its text, its numbers with their bounds and usual values, and its calls in any order. end is in ms.
export const patterns = {
  steady: ['Steady', [['Calls per second', 0.001, 1000, 4]], ([rate]) => calls(1000 / rate, { from: 0 })],
  bursts: ['Bursts', [['Calls in a burst', 1, 500, 15], ['Seconds between bursts', 0.01, 86400, 6]], ([together, s]) => calls(s * 1000, { together })],
  clients: ['Two clients: one steady, one in bursts', [['Calls per second', 0.001, 1000, 2], ['Calls in a burst', 1, 500, 8], ['Seconds between bursts', 0.01, 86400, 5]],
    ([rate, together, s]) => [...calls(s * 1000, { together, client: 1 }), ...calls(1000 / rate, { from: 0 })]],
  edge: ['Around the end of a fixed window, then after a pause', [], edge],
  attack: ['A guesser for some seconds, then a person', [['Guesses per second', 0.1, 100, 4], ['Seconds', 0.5, 3600, 4]],
    ([rate, s]) => [...calls(1000 / rate, { from: 1000, times: rate * s }), ...calls(2000, { from: 1500 + s * 1000, client: 1 })]],
  budget: ['An estimate for each request, and its settlement', [['Estimated units', 1, 1e9, 300], ['Seconds between requests', 0.1, 3600, 1]], budget],
  mixed: ['Calm, a burst, a pause and an overload', [],
    () => [...calls(2500, { times: 8 }), ...calls(0, { from: 24500, times: 16 }), ...calls(500, { from: 54250, times: 40 }), ...calls(2500, { from: 76500, times: 6 })]],
  lanes: ['Two calls, a burst, an overload', [], () => [...calls(0, { times: 2 }), ...calls(0, { from: 2500, times: 8 }), ...calls(250, { from: 4000 })]],
  holds: ['A hold for each request and its settlement, but one request dies', [], () => holds],
  share: ['Two tenants, SHARE in the second half', [['Bob’s calls per second', 0.1, 100, 3]],
    ([rate], end) => [...calls(1000 / rate, { client: 1 }), ...calls(2500, { from: end / 4 + 100 })].map((call) => ({ ...call, more: call.at >= end * 0.55 && 'SHARE 1' }))],
  none: ['None: I call', [], () => []],
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
  const { name, numbers } = read(text);
  const all = patterns[name][2](numbers, end, aim).filter(({ at }) => at <= end);
  return all.map((call) => ({ ...call, at: Math.round(call.at * 1000) / 1000 })).sort((x, y) => x.at - y.at).slice(0, most);
}

// edge begins a fixed window with one call, sends the rest of the limit just before its end, and a whole limit just after. After a
// pause it sends a limit again, and goes on asking for a period.
function edge(_, end, { limit = 10, period = 5000 }) {
  const margin = Math.min(Math.max(period / 25, 1), 250);
  const together = Math.min(limit, 200);
  return [...[[500, 1], [500 + period - margin, together - 1], [500 + period + margin, together], [500 + 2.6 * period, together]].flatMap(([from, together]) => calls(4 * period, { from, together })),
    ...calls(period / 16, { from: 500 + 2.6 * period + period / 16, times: 16 })];
}

// budget takes an estimate for each request. Later the true cost is known: the rest is given back, or charged past the limit.
function budget([estimate, s]) {
  const costs = [0.6, 1.7, 0.9, 0.4, 2.2, 1.1];
  return calls(s * 1000, { times: 60 }).flatMap(({ at, client }, i) => {
    const rest = Math.round(estimate * costs[i % costs.length]) - estimate;
    return [{ at, client, quantity: estimate, id: i + 1 }, { at: at + s * 600, client, quantity: rest, option: rest > 0 ? 'FORCE' : undefined, settles: i + 1 }];
  }).filter(({ quantity }) => quantity);
}

// holds are requests that hold an estimate and settle their cost 3 s later, but for the third one, which dies. Others come too soon.
const holds = [220, 420, 0, 0, 0, 0, 160].flatMap((cost, i) => {
  const at = [1000, 5500, 10000, 12000, 14000, 16000, 19500][i];
  return [{ at, client: 0, id: 101 + i }, ...(cost ? [{ at: at + 3000, client: 0, charge: cost, settles: 101 + i }] : [])];
});
