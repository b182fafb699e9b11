// The story: six scenes, each with a link. The reader acts, and the text follows.
import { h, button, copyButton } from './dom.js';
import { Stage } from './stage.js';
import { Funnel } from './funnel.js';
import { ready } from './program.js';
import { write } from './scene.js';

// Of each act until when it plays, what its button says, and what the reader has then seen. *Words* are stressed.
const steps = [
  { title: 'Click the funnel', name: 'A burst', ask: 'Fast. Every click is a call to an API that allows one call a second.',
    limiters: ['GO.THROTTLE you 4 1 1s MS'], traffic: 'bursts 8 10', length: 20000,
    said: ['*Admitted.* Your call poured one unit into the funnel. It drains by one unit a second, whatever you do.',
      '*Denied.* The funnel was full, so the call bounced off and took nothing. The reply says how long to wait. Wait that long, then call again.',
      'That is rate limiting. The funnel holds 5, so 5 calls may come at once: the *burst*. After that it is one call a second: the *rate*. All that is stored is the instant at which the funnel will be empty. The algorithm is called GCRA.'] },
  { title: 'Three ways to count to five', ask: 'Each lane allows 5 calls in 4 seconds. The same calls fall through all three.',
    limiters: ['GO.QUOTA api 5 4s', 'GO.WINDOW api 5 4s', 'GO.THROTTLE api 4 5 4s'], traffic: 'lanes', length: 16000, acts: [
      [2000, 'Make two calls', 'All three admit them (●). The curve shows how many of the 5 are left. In the first lane, a window of 4 seconds has begun. In the last one, the two units are already draining.'],
      [3900, 'Send 8 calls at once', 'Both *windows* still count the first two calls, so only 3 fit. In the *rate* lane those two have drained, so 5 fit. The rest are denied (✕).'],
      [16000, 'Ask four times a second', 'The *fixed window* starts over every 4 seconds: 5 calls in a row, then nothing. The *sliding window* admits a call once an old one is 4 seconds old. The *rate* admits one every 0.8 seconds, with no crowd and no gap.']] },
  { title: 'The edge of a fixed window', ask: 'The limit is 5 calls in 4 seconds. Get 9 through in a third of a second.',
    limiters: ['GO.QUOTA api 5 4s', 'GO.WINDOW api 5 4s'], traffic: 'edge', length: 8000, marked: true, acts: [
      [2500, 'Make one call', 'It opens a window of 4 seconds, with 4 calls left.'],
      [4450, 'Send 4 just before the window ends', 'They fit. The window is full now, but it is almost over.'],
      [8000, 'Send 5 just after', 'They fit, too: the new window counts from zero and knows nothing of the calls just before it. That is 9 calls in 0.3 seconds, *almost twice the limit*, and anyone who knows where the edge is can do it again. The *sliding window* remembers each call for 4 seconds, so it has no edge. It needs more memory.']] },
  { title: 'A guesser at the login', ask: 'Bob’s login allows 5 tries, then one every 2 seconds. Somebody is guessing his password.',
    limiters: ['GO.THROTTLE login:bob 4 5 10s', 'GO.THROTTLE login:bob 4 5 10s LOCKOUT 8s'], traffic: 'attack 4 8', length: 24000, low: true, titles: ['A rate', 'A rate with a lockout'], acts: [
      [9200, 'Guess four times a second', 'The *rate* stops most guesses, but lets one through every 2 seconds for as long as the guesser keeps going. The second lane has LOCKOUT: the first denial locks the name for 8 seconds (hatched). More guesses don’t make that longer.'],
      [24000, 'Stop, and let bob try', 'Bob’s own tries are squares (■). The *lockout* makes him wait, too. Keep it short, and limit by address as well as by name.']] },
  { title: 'Tokens, with debt', ask: 'An AI model’s answer costs tokens, and you only know how many once it is finished. Bob may use 100 a second, and 600 at once.',
    limiters: ['GO.THROTTLE tokens:bob 599 100 1s'], traffic: 'budget 300 1.5', length: 20000, low: true, titles: ['Bob’s tokens'], acts: [
      [1200, 'Ask a question', 'Before the model starts, the call reserves an *estimate* of 300 tokens. If that doesn’t fit, the call is denied before it has cost anything.'],
      [1900, 'See what the answer cost', 'Only 180. The other 120 are *given back* (the ring), and the curve jumps up.'],
      [3300, 'Ask again', 'This answer took 510. FORCE charges the missing 210 afterwards.'],
      [20000, 'Ask every 1.5 seconds', 'Some answers cost more than is left, and the curve drops below zero. That is *debt*. It drains at the same 100 a second, and new questions are denied until it is paid. Over time, Bob gets exactly his rate.']] },
  { title: 'Fair shares', ask: 'Alice and Bob share one limit: 10 calls at once, then one a second. Bob’s script asks three times a second.',
    limiters: ['GO.ALL api THROTTLE 9 10 10s KEY $client WINDOW 99 5s'], traffic: 'share', length: 40000, split: true, low: true, titles: ['Alice asks', 'Bob floods'], acts: [
      [10000, 'Let Bob flood', 'Bob is alone, so he gets everything: 10 at once, then one a second. That is what a shared limit is for.'],
      [22000, 'Let Alice ask, every 2.5 seconds', 'Bob grabs each unit the moment it drains. Alice finds nothing left, though she asks for less than half of what there is.'],
      [40000, 'Switch SHARE on', 'SHARE adds one rule: nobody may have more in use than is *left for the others*. Bob has far more, so he waits. Alice has hardly any, so she gets in *every time*. You list no tenants and set no quotas, and when Alice leaves, Bob can use nearly all of it again.']] },
];

export const isStep = (name) => /^story\/[1-6]$/.test(name);

// heights are such that the lanes of a scene fit into one screen. low is for lanes without columns of dots.
function heights({ limiters: { length }, titles, low }) {
  const lanes = titles?.length ?? length, narrow = innerWidth < 550, size = (narrow ? 330 - 30 * lanes : 420) / lanes;
  return (!low ? [0.42, 0.28, 0.3] : narrow ? [0.28, 0.24, 0.48] : [0.18, 0.16, 0.66]).map((part) => part * size);
}

export function storyView(name) {
  const index = isStep(name) ? name.at(-1) - 1 : 0;
  const { title, ask, said, acts = [], ...scene } = { ...structuredClone(steps[index]), own: [] };
  const texts = h('div', { class: 'texts', 'aria-live': 'polite' });
  const tell = (text) => texts.append(h('p', {}, ...text.split('*').map((part, i) => (i % 2 ? h('b', {}, part) : part))));
  const change = h('a', { href: write(scene) }, 'Change the limiters and the calls');
  const next = steps[index + 1];
  const go = h('a', { class: 'button', href: next ? `#story/${index + 2}` : '#log' }, next ? `Next: ${next.title}` : 'Next: your own log');
  const stage = index ? new Stage(scene, { heights: heights(scene), onchange: () => change.setAttribute('href', write(scene)) })
    : new Funnel((i) => { if (i === texts.childElementCount) tell(said[i]); if (texts.childElementCount === 3) go.classList.add('primary'); });
  let act = 0;
  const play = button(acts[0]?.[1] ?? 'Call', () => {
    if (!index) { stage.call(); return; }
    const [until, , text] = acts[act++];
    stage.hold(Math.max(acts[act - 2]?.[0] ?? 0, stage.now));
    stage.go(until, Math.min(Math.max(until - stage.now, 1200), 6000));
    tell(text);
    if (acts[act]) { play.textContent = acts[act][1]; return; }
    play.hidden = true;
    go.classList.add('primary');
    go.focus();
  }, { class: 'primary' });
  ready.then(() => (index ? stage.build() : stage.arrived()));
  return {
    element: h('div', { class: 'view story' },
      h('nav', { 'aria-label': 'Steps', class: 'steps' }, h('ol', {}, ...steps.map((s, i) => h('li', {}, h('a', { href: `#story/${i + 1}`, 'aria-current': i === index && 'step', 'aria-label': `${i + 1}. ${s.name ?? s.title}` }, `${i + 1}`, h('span', {}, ` ${s.name ?? s.title}`)))))),
      h('div', { class: 'columns' }, stage.element, h('section', { class: 'panel', 'aria-labelledby': 'title' }, h('h1', { id: 'title' }, title), h('p', { class: 'lead ask' }, ask),
        h('div', { class: 'bar-buttons' }, play, !index && button('Call 12 times', () => stage.call(12), { class: 'quiet' }), go), texts,
        h('div', { class: 'bar-buttons quiet-text' }, change, copyButton('Copy a link', () => `${location.href.split('#')[0]}#story/${index + 1}`, { class: 'quiet small' }))))),
    close: () => stage.stop(),
  };
}
