// The console: commands as in redis-cli, at times that the reader sets. All of them run again for each reply, so what is
// shown depends on the lines alone, and a link can hold them.
import { h, button, copyButton, setLink, setText, units } from './dom.js';
import { commandInput } from './command.js';
import { print, start } from './program.js';
import { words } from './scene.js';

const most = 500;

// wait returns the ms of a line such as +10s or +1d2h, or nothing if the line is a command.
function wait(line) {
  if (!/^\+(\d+(\.\d+)?(us|ms|s|m|h|d))+$/.test(line)) return undefined;
  return [...line.matchAll(/([\d.]+)([a-z]+)/g)].reduce((sum, [, n, unit]) => sum + n * units[unit], 0);
}

export function consoleView() {
  const calls = [], lines = [];
  let now = 0, back = 0;
  const out = h('div', { class: 'terminal', role: 'log', tabindex: 0, 'aria-label': 'Commands and replies' });
  const clock = h('output', { class: 'clock' });
  const show = (text, name) => out.append(h('pre', { class: name }, text));
  const enter = (text) => {
    const line = text.trim();
    if (!line) return;
    if (lines.length >= most) { show(`The console holds ${most} lines. Start again to go on.`, 'error'); return; }
    const by = wait(line);
    show(`> ${line}`, 'prompt');
    if (by !== undefined && now + by > 100 * 365 * units.d) show('(error) the clock ends in 2127', 'error');
    else if (by !== undefined) now += by;
    else {
      calls.push([now, line]);
      const reply = print(calls);
      show(reply, reply.startsWith('(error)') ? 'error' : '');
    }
    lines.push(line);
    setText(clock, `${new Date(start + now).toISOString().replace('T', ' ').replace('Z', '')} UTC`);
    setTimeout(() => { out.scrollTop = out.scrollHeight; }); // at first it is not on the page yet
  };
  const link = () => setLink(`#console?${new URLSearchParams(lines.map((line) => ['l', line]))}`);
  const send = (line) => { enter(line); link(); };
  const { element, input } = commandInput('Command', { onkeydown: (event) => {
    const by = { ArrowUp: -1, ArrowDown: 1, Enter: Infinity }[event.key];
    if (!by) return;
    event.preventDefault();
    if (event.key === 'Enter') send(input.value);
    back = Math.min(Math.max(back + by, 0), lines.length);
    input.value = lines[back] ?? '';
    input.dispatchEvent(new Event('input'));
  } });
  const restart = () => { history.replaceState(null, '', '#console'); dispatchEvent(new HashChangeEvent('hashchange')); };
  const given = words(location.hash).getAll('l').slice(0, most);
  for (const text of given.length ? given : ['GO.THROTTLE user:42 15 30 60', 'GO.INFO user:42', '+1s', 'GO.THROTTLE user:42 15 30 60 16']) enter(text.slice(0, 4000));
  back = lines.length;
  return {
    element: h('div', { class: 'view' }, h('div', { class: 'lead' }, h('h1', {}, 'A console'),
      h('p', {}, 'Type commands as in redis-cli. ↑ and ↓ bring lines back. The clock moves only when you move it, as by ', h('code', {}, '+10s'), ' or ', h('code', {}, '+1d2h'), '. HELP and COMMAND DOCS explain the commands. DEL, EXISTS, EXPIRE, PERSIST, TTL, TYPE, SET, TIME, FLUSHALL and CONFIG (for gothrottle.policies and gothrottle.top-keys) work, too.')),
    h('section', { class: 'card panel', 'aria-label': 'Console' }, h('div', { class: 'bar-buttons' }, h('span', {}, 'Clock: ', clock), ...['+100ms', '+1s', '+10s', '+1m', '+1h'].map((by) => button(by, () => send(by), { class: 'quiet small' })),
      button('Start again', restart, { class: 'quiet small' }), copyButton('Copy a link', () => { link(); return location.href; }, { class: 'quiet small' })), out, element)),
  };
}
