// The view Your log: which burst an access log asks for, and who would have been denied at another.
import { h, field, select, number, button, copyButton, setText, span, count } from './dom.js';
import * as program from './program.js';
import { pause, readLog, mostLines, example } from './logfile.js';

const percent = (part, all) => `${+((100 * part) / all).toPrecision(2)}\u00a0%`;
const share = (part, all, word) => `${part.toLocaleString('en')} of ${count(all, word)} (${percent(part, all)})`;
const periods = { 1000: 'second', 60000: 'minute', 3600000: 'hour' };
const wrong = 'No line has a time that the page can read. It reads access logs in the common and the combined format, JSON of Caddy and Traefik, and lines such as 2027-01-15T09:00:00Z,bob or 1800000000,bob.';

export function logView() {
  const setting = { rate: { count: 10, period: 60000 }, share: 1 };
  let log = null, job = 0;
  const status = h('p', { role: 'status' });
  const error = h('p', { class: 'error', role: 'alert' });
  const file = h('input', { type: 'file', onchange: () => {
    const [chosen] = file.files;
    file.value = ''; // the same file may be chosen again
    if (chosen) load(chosen.name, chosen);
  } });
  const paste = h('textarea', { rows: 4, spellcheck: 'false', placeholder: '2027-01-15T09:00:00Z,bob' });
  const read = button('Read these lines', () => load('the lines', new Blob([paste.value])));

  const title = h('h2'), verdict = h('p', { class: 'verdict', 'aria-live': 'polite' }), warning = h('p', { class: 'warn', role: 'status' });
  const back = button('Back to the recommendation', () => choice(log.recommended), { class: 'quiet small' });
  const another = number('Another burst', 1, 1, 1e12, (value) => choice(Math.round(value), true));
  const [policy, command, go] = ['Set a policy in redis-cli; your program then sends GO.POLICY api:$user', 'Or send this command', 'Or use the Go client'].map((text) => {
    const code = h('code');
    return { code, element: h('div', { class: 'field' }, h('div', { class: 'lane-head' }, h('small', {}, text), copyButton('Copy', () => code.textContent, { class: 'quiet small', 'aria-label': `Copy: ${text}` })), h('pre', {}, code)) };
  });
  const results = h('section', { class: 'lanes', 'aria-label': 'Results', hidden: true },
    h('article', { class: 'card lane' }, h('div', { class: 'lane-head' }, title, back), verdict, another, warning, policy.element, command.element, go.element));

  // load reads a log in parts. Between them, the page stays responsive.
  async function load(name, blob) {
    const mine = ++job;
    setText(error, '');
    setText(status, `Reading ${name} …`);
    const found = await readLog(blob, () => mine !== job).catch(() => null);
    if (mine !== job) return;
    if (!found?.total) {
      setText(status, '');
      results.hidden = true;
      return setText(error, found ? wrong : 'The browser could not read the file: drop it again.');
    }
    const { users, total, first, last, skipped } = found;
    const times = [...users.values()];
    await pause();
    program.readLog(times);
    log = { total, names: [...users.keys()], calls: times.map((own) => own.length), span: last - first };
    setText(status, `${name}: ${count(total, 'call')} of ${count(users.size, 'user')} in ${span(log.span)}.${skipped ? ` ${count(skipped, 'line')} without a time or a user, or past the bounds, left out.` : ''}${found.full ? ` The page reads ${count(mostLines, 'call')}.` : ''}`);
    await again(mine);
  }

  // again recommends a burst for the rate and the share.
  async function again(mine = ++job) {
    if (!log) return;
    await pause();
    if (mine !== job) return;
    log.top = program.rate(setting.rate.count, setting.rate.period);
    [log.recommended, ...log.robots] = program.recommend(setting.share);
    warn();
    choice(log.recommended);
    results.hidden = false;
    status.dataset.done = job;
  }

  // warn says what the recommendation leaves out, and whether the rate fits.
  function warn() {
    const { robots, names, calls, total, top, recommended } = log;
    const part = percent(robots.reduce((sum, user) => sum + calls[user], 0), total);
    const slow = recommended >= 100 && (recommended * setting.rate.period) / setting.rate.count > log.span / 2;
    const [make, look, they] = robots.length > 1 ? ['make', 'look like robots, or each like', 'they were'] : ['makes', 'looks like a robot, or like', 'it was'];
    setText(warning, (robots.length ? `${robots.slice(0, 5).map((user) => names[user]).join(', ')}${robots.length > 5 ? ` and ${robots.length - 5} more` : ''} ${make} ${part} of the calls and ${look} many people behind one address, so ${they} left out when this burst was chosen. Only a burst of ${top.toLocaleString('en')} would deny nobody. ` : '')
      + (slow ? 'This burst takes more than half of the log to drain: your users call more often than the rate allows. Raise the rate.' : ''));
  }

  // choice decides the log at a limit.
  function choice(limit, typed) {
    if (!log.recommended) return;
    const { rate } = setting, period = periods[rate.period];
    const [denied, users, worst, most] = program.decide(limit);
    if (!typed) another.querySelector('input').value = limit;
    back.hidden = limit === log.recommended;
    setText(title, `${back.hidden ? 'Recommended' : 'Your choice'}: a burst of ${limit.toLocaleString('en')}`);
    setText(verdict, `With ${rate.count} per ${period} for each user, it denies ${share(users, log.names.length, 'user')} and ${share(denied, log.total, 'call')}.${
      denied ? ` Denied most: ${log.names[worst] || '(no name)'}, ${share(most, log.calls[worst], 'call')}.` : ''}`);
    setText(policy.code, `CONFIG SET gothrottle.policies "api THROTTLE ${limit - 1} ${rate.count} 1${period[0]}"`);
    setText(command.code, `GO.THROTTLE api:$user ${limit - 1} ${rate.count} ${rate.period / 1000}`);
    setText(go.code, `api := client.Rate("api", throttle.Per${period[0].toUpperCase()}${period.slice(1)}(${rate.count}).Burst(${limit}))`);
  }

  const panel = h('section', { class: 'card panel', 'aria-label': 'Traffic and rate' }, field('Drop an access log here, or a CSV of time and user', file), h('details', {}, h('summary', {}, 'Or paste lines'), h('div', { class: 'editor' }, field('A time and who called, in each line', paste), read)), error,
    h('h2', {}, 'The rate'), h('div', { class: 'editor' }, number('Calls', setting.rate.count, 1, 1000000, (value) => { setting.rate.count = Math.max(1, Math.round(value)); again(); }),
      field('per', select(Object.entries(periods), setting.rate.period, (value) => { setting.rate.period = Number(value); again(); })),
      number('Users it may deny, in % (robots don’t count)', setting.share, 0, 100, (value) => { setting.share = value; again(); })));
  load('An example', new Blob([example()]));
  return {
    element: h('div', { class: 'view' }, h('div', { class: 'lead' }, h('h1', {}, 'Your own traffic'),
      h('p', {}, 'Which burst stops robots but not people? Drop an access log and pick a rate. The log stays in this page: nothing is uploaded.'), status),
    h('div', { class: 'columns' }, results, panel)),
    close: () => { job++; },
  };
}
