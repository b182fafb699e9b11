// The story: seven scenes, each with a link. Calls rain into its funnels; the reader calls, too, and moves the numbers.
import { h, button, copyButton, setText } from './dom.js';
import { Stage } from './stage.js';
import { Funnel } from './funnel.js';
import { ready } from './program.js';
import { write } from './scene.js';

// Scores are counted from calls: how many were admitted of those that pass a test, the most that were admitted within a time, and
// the longest time in which all that came were denied.
const admitted = (calls) => calls.filter(({ denied }) => !denied);
const got = (test) => (calls) => [admitted(calls.filter(test)).length, calls.filter(test).length].join(' of ');
const crowd = (ms) => (calls) => Math.max(0, ...admitted(calls).map(({ at }, i, all) => all.filter((other) => other.at <= at && other.at > at - ms).length));
const shut = (calls) => `${Math.max(0, ...calls.map(({ at, denied }, i) => (denied ? at - calls.slice(0, i).findLast((call) => !call.denied)?.at : 0))) / 1000} s`;

const low = [40, 36, 104], few = [42, 28, 30]; // charts without columns of dots, and with

// A scene's numbers have their usual value, bounds and name; {n} and {n-1} stand for them. An act has when it begins, what its
// button says, and what the reader then sees, with *stressed* words. The score's rows have a value for each limiter.
const steps = [
  { title: 'Click the funnel', name: 'A burst', ask: 'Every drop is a call to an API. The funnel holds {n} and drains {r} each second. Click it, fast: your calls join the rain.',
    numbers: { n: [5, 1, 12, 'Burst'], r: [1, 1, 5, 'Calls a second'] }, limiters: ['GO.THROTTLE you {n-1} {r} 1s MS'], traffic: 'bursts 2 1.3', length: 20000, heights: few, titles: ['Rate with a burst'],
    score: [['Your calls admitted', got(({ own }) => own)], ['Rain admitted', got(({ own }) => !own)]],
    acts: [[() => 500, '', '*Admitted.* A call pours one unit into the funnel, which drains at its rate, whatever you do.'],
      [(calls) => calls.find(({ denied }) => denied)?.at, '', '*Denied.* The funnel was full, so the call bounced off and took nothing. The reply says how long to wait.'],
      [(calls) => calls.find(({ denied }, i) => !denied && calls.slice(0, i).some((call) => call.denied))?.at, '', 'That’s rate limiting. What fits is the *burst*, what drains is the *rate*. All that’s stored is the instant at which the funnel will be empty. The algorithm is called GCRA.']] },
  { title: 'Three ways to count', ask: 'Each funnel allows {n} calls in 4 seconds. The same calls rain into all three.', numbers: { n: [5, 2, 10, 'Limit'] },
    limiters: ['GO.QUOTA api {n} 4s', 'GO.WINDOW api {n} 4s', 'GO.THROTTLE api {n-1} {n} 4s'], traffic: 'lanes', length: 16000, heights: few,
    score: [['Most in 4 s', crowd(4000)], ['Longest time shut', shut]],
    acts: [[0, 'Make two calls', 'All three admit them. A *fixed window* of 4 seconds begins. The *sliding window* forgets each call after 4 seconds. The *rate* is already draining.'],
      [2500, 'Send 8 calls together', 'Both windows still hold the first two calls, so there’s room for {n-2}. In the rate’s funnel those two have drained, so there’s room for {n}. The rest bounce off.'],
      [4000, 'Ask four times a second', 'The fixed window empties every 4 seconds: a crowd, then nothing. The sliding window frees a place when a call is 4 seconds old, so crowds come back. The rate spaces calls out. Look at the score: within 4 seconds, a fixed window and a rate can both let more than the limit through. The next scene shows when.']] },
  { title: 'The edge of a window', name: 'The edge', ask: 'The limit is {n} calls in 4 seconds, the rate’s burst is {b}. Get almost twice as many through.', numbers: { n: [5, 2, 10, 'Limit'], b: [5, 1, 10, 'Burst'] },
    limiters: ['GO.QUOTA api {n} 4s', 'GO.WINDOW api {n} 4s', 'GO.THROTTLE api {b-1} {n} 4s'], traffic: 'edge', length: 16000, heights: few, marked: true,
    score: [['Most in 4 s', crowd(4000)], ['Most in 0.5 s', crowd(500)]],
    acts: [[0, 'Open a window', 'The first call opens a fixed window of 4 seconds. Just before it ends, it’s filled up.'],
      [4600, 'Send the limit just after', 'The new window knows nothing of the calls just before it: *almost twice the limit* within half a second. Anyone who knows the edge can do that every time. A *sliding window* has no edge, but needs more memory.'],
      [10400, 'Now exploit the rate', 'A *rate with a burst* can let almost twice the limit through, too: the burst, and what drains during 4 seconds. That’s rarer and milder: it takes a pause first, no more than the burst come together, and the others one by one. Make the burst smaller, and the excess shrinks. A burst of 1 has none.']] },
  { title: 'A guesser at the login', name: 'A login', ask: 'Bob’s login allows 5 tries, then one every 2 seconds. Somebody guesses {g} times a second. A denial may lock the name for {l} seconds.', numbers: { g: [4, 1, 10, 'Guesses a second'], l: [8, 2, 12, 'Lockout in seconds'] },
    limiters: ['GO.THROTTLE login:bob 4 5 10s', 'GO.THROTTLE login:bob 4 5 10s LOCKOUT {l}s'], traffic: 'attack {g} 8', length: 24000, heights: low, titles: ['A rate', 'With a lockout'], verb: 'Guess, too',
    score: [['Guesses that got through', (calls) => admitted(calls).filter(({ client }) => !client).length], ['Bob got in', got(({ client }) => client)]],
    acts: [[0, 'Guess', 'The *rate* stops most guesses, but lets one through every 2 seconds for as long as the guesser keeps going. With *LOCKOUT*, the first denial locks the name. More guesses don’t make that longer.'],
      [9200, 'Stop, and let Bob try', 'Bob’s own tries are violet. The lockout makes him wait, too. Keep it short, and limit by address as well as by name.']] },
  { title: 'Tokens, with debt', name: 'Tokens', ask: 'An answer’s tokens are counted once it’s finished. Each question reserves {e} of Bob’s 600, and {r} drain each second.', numbers: { e: [300, 100, 600, 'Estimate'], r: [100, 50, 200, 'Tokens a second'] },
    limiters: ['GO.THROTTLE tokens:bob 599 {r} 1s {e}'], traffic: 'budget {e} 1.5', length: 20000, heights: low, titles: ['Bob’s tokens'], verb: 'Ask, too',
    score: [['Questions answered', got(({ settles }) => !settles)], ['Tokens used', (calls) => calls.reduce((sum, { taken }) => sum + taken, 0).toLocaleString('en')]],
    acts: [[0, 'Ask a question', 'Before the model starts, the call reserves an *estimate*. If that doesn’t fit, it’s denied before it has cost anything.'],
      [1300, 'See what it cost', 'Less than the estimate. The rest is *given back* by a call with a negative quantity.'],
      [2000, 'Ask again', 'This answer took more than its estimate. *FORCE* charges what’s missing afterwards.'],
      [3500, 'Keep asking', 'Some answers cost more than is left. What’s above the rim is *debt*. It drains at the same rate, and new questions are denied until it’s paid. Over time, Bob gets exactly his rate.']] },
  { title: 'Fair shares', ask: 'Alice and Bob share one limit: a burst of {n} calls, then one a second. Bob’s script asks {f} times a second.', numbers: { n: [10, 4, 20, 'Burst'], f: [3, 1, 10, 'Bob’s calls a second'] },
    limiters: ['GO.ALL api THROTTLE {n-1} 10 10s KEY $client WINDOW 99 5s'], traffic: 'share {f}', length: 40000, split: true, heights: low, titles: ['Alice asks', 'Bob floods'], verb: 'Ask as Alice',
    score: [['Got in without SHARE', got(({ more }) => !more)], ['With SHARE', got(({ more }) => more)]],
    acts: [[0, 'Let Bob flood', 'Bob is alone, so he gets everything: a burst, then one a second. That’s what a shared limit is for.'],
      [10000, 'Let Alice ask', 'Bob (violet) grabs each unit the moment it drains. Alice asks every 2.5 seconds and finds nothing left, though that’s less than half of what there is.'],
      [22000, 'Switch SHARE on', 'SHARE adds one rule: nobody may have more in use than is *left for the others*. Bob has far more, so he waits. Alice has hardly any, so she gets in *every time*. You list no tenants and set no quotas.']] },
  { title: 'Hold a budget', name: 'Holds', ask: 'Bob has 1,000 tokens. Each request holds {e} of them for at most {t} seconds and settles its cost when it’s done. One crashes.', numbers: { e: [300, 100, 350, 'Estimate'], t: [8, 4, 12, 'Time to live in seconds'] },
    limiters: ['GO.ALL bob QUOTA 1000 30d 0 KEY h LEASE 1000 {t}s r$n {e} SHARE 1'], traffic: 'holds', length: 24000, heights: low, titles: ['Bob’s budget'], verb: 'Hold, too',
    score: [['Held by the crashed request', () => funnel.all[0].bands.reduce((sum, { call, held, units }) => sum + (held && !call.settled && !call.own ? units : 0), 0)],
      ['Requests that got a hold', got(({ settles }) => !settles)]],
    acts: [[0, 'Hold an estimate', 'A call *holds* an estimate (hatched) under an id: spent and held together never exceed the budget. When the answer is done, RELEASE frees the hold and charges the real cost, once.'],
      [9800, 'Crash a holder', 'The third request dies with its tokens held. Nobody settles them, and the next requests no longer fit.'],
      [(calls) => calls.find(({ until, settled, own }) => until && !settled && !own)?.until - 300, 'Wait for the time to live', 'The dead hold *lapses*. Nothing was charged, nothing stays held, and *nobody is locked out*: the next request fits. A request that takes longer renews its hold.']] },
];

export const isStep = (name) => /^story\/[1-7]$/.test(name);

const funnel = new Funnel(); // it stays through all scenes

export function storyView(name) {
  const index = isStep(name) ? name.at(-1) - 1 : 0;
  const { title, ask, acts, numbers, score, verb = 'Call', ...step } = steps[index];
  const values = Object.fromEntries(Object.entries(numbers).map(([key, [value]]) => [key, value]));
  const filled = (text) => text.replaceAll(/\{(\w)(-\d)?\}/g, (_, key, less) => values[key] + Number(less ?? 0));
  const scene = { ...step, own: [] };
  const fill = () => Object.assign(scene, { limiters: step.limiters.map(filled), traffic: filled(step.traffic) });
  const slider = (key) => {
    const [, min, max, label] = numbers[key], output = h('b', {}, values[key]);
    return h('label', { class: 'slide' }, output, h('input', { type: 'range', min, max, step: max > 100 ? 10 : 1, value: values[key], 'aria-label': label, oninput: (event) => {
      values[key] = event.target.valueAsNumber;
      setText(output, values[key]);
      fill();
      stage.again();
    } }));
  };
  const table = h('table', { class: 'score' });
  const texts = h('div', { class: 'texts', 'aria-live': 'polite' });
  const change = h('a', {}, 'Change the limiters and the calls');
  const next = steps[index + 1];
  const go = h('a', { class: 'button', href: next ? `#story/${index + 2}` : '#log' }, next ? `Next: ${next.title}` : 'Next: your own log');
  let act = 0;
  const begins = ([when], [{ result }]) => (when.call ? when(result.calls) : when);
  // follow tells what the scene has come to, and counts.
  const follow = ({ lanes, now }) => {
    for (; act < acts.length && begins(acts[act], lanes) <= now; act++) texts.append(h('p', {}, ...filled(acts[act][2]).split('*').map((part, i) => (i % 2 ? h('b', {}, part) : part))));
    setText(play, acts[act]?.[1] ?? '');
    if (!play.textContent && document.activeElement === play) go.focus();
    play.hidden = !play.textContent;
    go.classList.toggle('primary', act === acts.length);
    const rows = score.map(([text, count]) => [text, ...lanes.map(({ result }) => count(result.calls.filter(({ at }) => at <= now)))]);
    if (String(rows) !== table.dataset.rows) table.replaceChildren(lanes.length > 1 ? h('tr', {}, h('td'), ...lanes.map(({ title }) => h('th', { scope: 'col' }, title.textContent.split(' (')[0]))) : '', ...rows.map(([text, ...counts]) => h('tr', {}, h('th', { scope: 'row' }, text), ...counts.map((count) => h('td', {}, count)))));
    table.dataset.rows = String(rows);
  };
  const play = button('', () => {
    stage.move(begins(acts[act], stage.lanes));
    if (!stage.frame) stage.go();
  }, { class: 'primary' });
  fill();
  const stage = new Stage(scene, { heights: scene.heights, funnel, onchange: () => change.setAttribute('href', write(scene)), onmove: follow });
  funnel.oncall = () => stage.call();
  ready.then(() => { stage.build(); stage.go(); });
  return {
    element: h('div', { class: 'view story' },
      h('nav', { 'aria-label': 'Steps', class: 'steps' }, h('ol', {}, ...steps.map((s, i) => h('li', {}, h('a', { href: `#story/${i + 1}`, 'aria-current': i === index && 'step', 'aria-label': `${i + 1}. ${s.name ?? s.title}` }, `${i + 1}`, h('span', {}, ` ${s.name ?? s.title}`)))))),
      h('div', { class: 'columns' }, stage.element, h('section', { class: 'panel', 'aria-labelledby': 'title' }, h('h1', { id: 'title' }, title), h('p', { class: 'lead ask' }, ...ask.split(/\{(\w)\}/).map((part, i) => (i % 2 ? slider(part) : part))),
        h('div', { class: 'bar-buttons' }, play, button(verb, () => stage.call(), { class: 'quiet' }), !index && button('Call 12 times', () => stage.call(undefined, 12), { class: 'quiet' }), go), table, texts,
        h('div', { class: 'bar-buttons quiet-text' }, change, copyButton('Copy a link', () => `${location.href.split('#')[0]}#story/${index + 1}`, { class: 'quiet small' }))), stage.cards)),
    close: () => stage.stop(),
  };
}
