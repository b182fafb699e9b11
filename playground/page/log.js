// The view Your log: who would have been denied at a limit.
import { h, svg, field, select, number, button, copyButton, setText, span, count } from './dom.js';
import * as program from './program.js';
import { LogReader, mostLines, example } from './logfile.js';

const pause = () => new Promise((done) => setTimeout(done));
const percent = (part, all) => `${+((100 * part) / all).toPrecision(2)} %`;
const periods = { 1000: 'second', 60000: 'minute', 3600000: 'hour' };
const wrong = 'No line has a time that the page can read. It reads access logs in the common and the combined format, and lines such as 2027-01-15T09:00:00Z,bob or 1800000000,bob.';

export function logView() {
  const setting = { limit: 12, rate: { count: 10, period: 60000 }, share: 1 };
  let log = null, job = 0;
  const status = h('p', { role: 'status' });
  const error = h('p', { class: 'error', role: 'alert' });
  const file = h('input', { type: 'file', onchange: () => choose(file) });
  const paste = h('textarea', { rows: 4, spellcheck: 'false', placeholder: '2027-01-15T09:00:00Z,bob' });
  const read = button('Read these lines', () => load('the lines', new Blob([paste.value])));
  const choose = ({ files: [chosen] }) => chosen && load(chosen.name, chosen);
  const over = (is) => (event) => {
    event.preventDefault();
    drop.classList.toggle('over', is);
  };
  const drop = h('div', { class: 'drop', ondragover: over(true), ondragleave: over(false), ondrop: (event) => { over(false)(event); choose(event.dataTransfer); } }, field('Drop an access log here, or a CSV of time and key', file));

  const slider = h('input', { type: 'range', min: 0, max: 100, oninput: () => { setting.limit = Math.max(1, Math.round(log.top ** (slider.valueAsNumber / 100))); show(); } });
  const shown = h('output');
  const verdict = h('p', { class: 'verdict', 'aria-live': 'polite' });
  const smallest = h('p');
  const use = button('Use it', () => { setting.limit = log.smallest; show(); }, { class: 'quiet small' });
  const worst = h('tbody');
  const picture = svg('svg', { class: 'chart', role: 'img', height: 190, 'aria-label': 'Denied calls and users by burst' });
  const policy = h('code'), command = h('code');
  const line = (text, code) => h('div', { class: 'line' }, h('div', { class: 'line-head' }, h('span', {}, text), copyButton('Copy', () => code.textContent, { class: 'quiet small', 'aria-label': `Copy: ${text}` })), h('pre', {}, code));
  const results = h('section', { class: 'lanes', 'aria-label': 'Results', hidden: true }, h('article', { class: 'card lane' }, verdict, field('Burst: calls at once', slider), shown, picture,
    h('p', { class: 'quiet-text' }, h('span', { class: 'curve-name' }, '── calls'), ' and ', h('span', { class: 'curve2-name' }, '╌╌ users'), ' of whom some are denied, by burst.'), h('div', { class: 'bar-buttons' }, smallest, use)),
  h('article', { class: 'card lane' }, h('h2', {}, 'Denied most'), h('table', { class: 'verdicts' }, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Who'), h('th', { scope: 'col' }, 'Denied calls'))), worst)),
  h('article', { class: 'card lane' }, h('h2', {}, 'To set this limit'), line('A policy, in redis-cli; callers then say GO.POLICY api:$user', policy), line('Or the command that callers send', command)));

  // load reads a log in parts. Between them, and between the points of the curve, the page stays alive.
  async function load(name, blob) {
    const mine = ++job;
    const reader = new LogReader();
    setText(error, '');
    setText(status, `Reading ${name} …`);
    try {
      const text = blob.stream().pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await text.read(); !part.done && !reader.full; part = await text.read()) {
        reader.add(part.value);
        if (mine !== job) return;
      }
      reader.add('\n');
    } catch {
      return setText(error, 'The browser could not read the file: drop it again.');
    }
    if (!reader.times.length) {
      setText(status, '');
      results.hidden = true;
      return setText(error, wrong);
    }
    log = { calls: reader.times.length, names: reader.names, skipped: reader.skipped, full: reader.full };
    const [first, last] = reader.times.reduce(([a, b], at) => [Math.min(a, at), Math.max(b, at)], [Infinity, 0]);
    program.readLog(Float64Array.from(reader.times), Int32Array.from(reader.users), reader.names.length);
    setText(status, `${name}: ${count(log.calls, 'call')} of ${count(log.names.length, 'user')} in ${span(last - first)}.${log.skipped ? ` ${count(log.skipped, 'line')} without a time or past the bounds left out.` : ''}${log.full ? ` The page reads ${count(mostLines, 'call')}.` : ''}`);
    await again(mine);
  }

  // again finds the curve for the rate, and the smallest limit for the share.
  async function again(mine = ++job) {
    if (!log) return;
    const top = program.rate(setting.rate.count, setting.rate.period);
    log.top = Math.max(top, 2);
    const points = [];
    setting.limit = Math.min(setting.limit, log.top);
    for (const limit of new Set(Array.from({ length: 9 }, (_, i) => Math.round(top ** (i / 8))))) {
      const [denied, users] = program.decide(limit);
      points.push([limit, denied / log.calls, users / log.names.length]);
      await pause();
      if (mine !== job) return;
    }
    log.points = points;
    log.smallest = program.smallest(Math.floor((log.calls * setting.share) / 100));
    setText(smallest, `The smallest burst that denies at most ${setting.share} % of the calls is ${count(log.smallest, 'call')}.`);
    show();
    results.hidden = false;
    status.dataset.done = job;
  }

  // show decides the log at the limit of the setting.
  function show() {
    const { limit, rate } = setting;
    const [denied, users, ...most] = program.decide(limit);
    slider.value = (100 * Math.log(limit)) / Math.log(log.top);
    setText(shown, count(limit, 'call'));
    slider.setAttribute('aria-valuetext', shown.textContent);
    setText(verdict, `With a burst of ${limit.toLocaleString('en')} and ${rate.count} per ${periods[rate.period]} for each user, ${count(denied, 'call')} (${percent(denied, log.calls)}) of ${count(users, 'user')} (${percent(users, log.names.length)}) would have been denied.`);
    worst.replaceChildren(...most.flatMap((user, i) => (i % 2 ? [] : [h('tr', {}, h('th', { scope: 'row' }, log.names[user] || '(no name)'), h('td', {}, most[i + 1].toLocaleString('en')))])));
    if (!most.length) worst.replaceChildren(h('tr', {}, h('td', { colspan: 2 }, 'Nobody.')));
    setText(policy, `CONFIG SET gothrottle.policies "api THROTTLE ${limit - 1} ${rate.count} 1${periods[rate.period][0]}"`);
    setText(command, `GO.THROTTLE api:$user ${limit - 1} ${rate.count} ${rate.period / 1000}`);
    if (log.points) draw();
  }

  function draw() {
    const [left, right, top, bottom] = [52, (picture.clientWidth || 640) - 10, 12, 160];
    const x = (limit) => left + ((right - left) * Math.log(limit)) / Math.log(log.top);
    const high = Math.max(0.01, ...log.points.flatMap(([, calls, users]) => [calls, users]));
    const y = (share) => bottom - ((bottom - top) * share) / high;
    const path = (i) => log.points.map((p, n) => `${n ? 'L' : 'M'}${x(p[0]).toFixed(1)} ${y(p[i]).toFixed(1)}`).join('') + (log.points.at(-1)[1] ? '' : `H${right}`);
    const ticks = [...new Set([1, 10, 100, 1000, 10000, 100000].filter((n) => n < log.top / 3).concat(log.top))];
    const text = (at, height, words, anchor = 'end') => svg('text', { class: 'label', x: at, y: height, 'text-anchor': anchor }, words);
    picture.replaceChildren(svg('line', { class: 'base', x1: left, x2: right, y1: bottom, y2: bottom }), text(left - 6, top + 5, percent(high, 1)), text(left - 6, bottom + 4, '0'),
      ...ticks.map((n) => text(x(n), bottom + 18, n.toLocaleString('en'), n === 1 ? 'start' : n === log.top ? 'end' : 'middle')),
      svg('path', { class: 'curve curve1', d: path(2) }), svg('path', { class: 'curve curve0', d: path(1) }),
      svg('line', { class: 'cursor', x1: x(Math.min(setting.limit, log.top)), x2: x(Math.min(setting.limit, log.top)), y1: top, y2: bottom }));
  }

  new ResizeObserver(() => log?.points && draw()).observe(picture);
  const panel = h('section', { class: 'card panel', 'aria-label': 'Traffic and rate' }, drop, h('details', {}, h('summary', {}, 'Or paste lines'), h('div', { class: 'editor' }, field('A time and who called, in each line', paste), read)), status, error,
    h('h2', {}, 'The rate'), h('div', { class: 'editor' }, number('Calls', setting.rate.count, 1, 1000000, (value) => { setting.rate.count = Math.max(1, Math.round(value)); again(); }),
      field('per', select(Object.entries(periods), setting.rate.period, (value) => { setting.rate.period = Number(value); again(); })),
      number('Deny at most this share of calls, in %', setting.share, 0, 100, (value) => { setting.share = value; again(); })));
  load('An example', new Blob([example()]));
  return {
    element: h('div', { class: 'view' }, h('div', { class: 'lead' }, h('h1', {}, 'Your own traffic'),
      h('p', {}, 'Who would have been denied? Drop a log, choose a rate, and move the burst. The log is read in this page and sent nowhere. Times of an access log are whole seconds, so the calls of one second count as calls at one instant.')),
    h('div', { class: 'columns' }, results, panel)),
    close: () => { job++; },
  };
}
