// The story: five scenes, each with a link.
import { h, button, copyButton } from './dom.js';
import { Stage } from './stage.js';
import { write } from './link.js';

const steps = [
  { title: 'A burst', limiters: ['GO.THROTTLE api 9 2 1000 MS'], traffic: 'bursts 15 6', length: 14000,
    text: ['Think of a funnel. Every admitted call puts one unit into it, and units drain at a steady rate. A call that does not fit is denied.',
      'This funnel holds 10 units, and 2 a second drain. Of 15 calls at one instant 10 are admitted. Five seconds later it is empty again, and the curve of what is left is back at 10. No counter is reset and no window ends: one stored instant, when the funnel will be empty, is the whole state. That is GCRA.',
      'Point at a cross: the reply says how long to wait, to the millisecond. Click into the chart to make a call at that time.'] },
  { title: 'The edge of a fixed window', limiters: ['GO.QUOTA api 10 4000 MS'], traffic: 'edge', length: 12000,
    text: ['A fixed window counts to 10, and begins again every 4 seconds. It is simple, and good for “1,000 a day”.',
      'But look at its edge. One call begins the window, 9 come just before it ends, and 10 just after. All are admitted: 19 within a third of a second, almost twice the limit. The bracket marks them. Anyone who knows the edge can do this again and again.'] },
  { title: 'The same calls, three algorithms', limiters: ['GO.QUOTA api 10 4000 MS', 'GO.WINDOW api 10 4000 MS', 'GO.THROTTLE api 9 10 4000 MS'], traffic: 'edge', length: 12000,
    text: ['The same calls at the same times. GO.WINDOW remembers each call for 4 seconds: in no span of 4 seconds does it admit more than 10. The shaded band is the span that it looks at.',
      'GO.THROTTLE has no edge either: what the calls before the edge took has not drained yet. It needs as little memory as GO.QUOTA, and it lets waiting calls in one by one instead of all at once.'] },
  { title: 'A guesser at the login', limiters: ['GO.THROTTLE login:bob 4 5 10000 MS', 'GO.THROTTLE login:bob 4 5 10000 MS LOCKOUT 8000'], traffic: 'attack 4 4', length: 20000,
    text: ['Somebody guesses bob’s password, four times a second. The first limiter denies most of it, but every 2 seconds one more guess gets through, for as long as the guesser goes on.',
      'The second one has LOCKOUT 8000: the first denial begins a pause of 8 seconds (hatched), in which nothing is admitted. Later guesses do not extend it. After it, bob himself (■) gets in. During it bob has to wait, too: so keep it short, and count per address as well as per name.'] },
  { title: 'A budget of tokens', limiters: ['GO.THROTTLE tokens:bob 999 100 1000 MS'], traffic: 'budget 300 1', length: 20000,
    text: ['Requests to a language model cost tokens, and only the finished answer shows how many. So each request first takes an estimate of 300 (a large dot). If that does not fit, the request is denied before it costs anything.',
      'Afterwards the estimate is settled. Tokens that were not used are given back (a ring). If the answer was longer, FORCE charges the rest, even past the limit: the curve goes below zero. That is debt, and it drains at the same rate, here 100 a second, before anything else is admitted.'] },
];

export const isStep = (name) => /^story\/[1-5]$/.test(name);

export function storyView(name) {
  const index = isStep(name) ? name.at(-1) - 1 : 0;
  const { title, text, ...story } = steps[index];
  const scene = { ...structuredClone(story), own: [] };
  const link = h('a', { class: 'button', href: write('try', scene) }, 'Change the limiters and the traffic');
  const stage = new Stage(scene, () => link.setAttribute('href', write('try', scene)));
  const go = (to) => { location.hash = `#story/${to}`; };
  return {
    element: h('div', { class: 'view' },
      h('nav', { 'aria-label': 'Steps', class: 'steps' }, h('ol', {}, ...steps.map((s, i) => h('li', {}, h('a', { href: `#story/${i + 1}`, 'aria-current': i === index && 'step' }, `${i + 1}. `, h('span', {}, s.title)))))),
      h('div', { class: 'columns story' }, h('section', { class: 'card panel', 'aria-labelledby': 'title' }, h('h1', { id: 'title' }, `${index + 1}. ${title}`), ...text.map((paragraph) => h('p', {}, paragraph)),
        h('div', { class: 'bar-buttons' }, index > 0 && button('Back', () => go(index), { class: 'quiet' }), index + 1 < steps.length && button('Next', () => go(index + 2), { class: 'primary' }), copyButton('Copy a link', () => `${location.href.split('#')[0]}#story/${index + 1}`)), link), stage.element)),
    close: () => stage.go(false),
  };
}
