// The view Compare: the same calls for three algorithms.
import { h, field, number, linkButton, possible, setText, span, strangeLink } from './dom.js';
import { Player } from './player.js';
import { trafficForm } from './traffic.js';
import { params, readNumber, readTraffic, clean, readable, setLink } from './link.js';

const kinds = ['quota', 'throttle', 'window'];
const names = ['Fixed window', 'Rate with a burst (GCRA)', 'Sliding window'];
const patterns = ['boundary', 'steady', 'bursts'];
const commands = ['GO.QUOTA', 'GO.THROTTLE', 'GO.WINDOW'];

function readSetting() {
  const words = params(location.hash, 'compare');
  const setting = { limit: 10, period: 4000, traffic: { pattern: 'boundary', rate: 8, size: 15, every: 3000 } };
  if (!words) return setting;
  const { traffic, strange } = readTraffic(words, patterns);
  return { limit: readNumber(words, 'limit') ?? setting.limit, period: Math.round(readNumber(words, 'period') ?? setting.period), traffic, strange };
}

const specs = ({ limit, period }) => kinds.map((kind) => (kind === 'throttle' ? { kind, limit, count: limit, period } : { kind, limit, period }));

// verdict tells in words how the most that was admitted in one period compares with the limit.
export function verdict(units, limit) {
  if (!units) return ['', ''];
  if (units <= limit) return ['not above the limit', 'good'];
  if (units >= 2 * limit) return ['twice the limit', 'bad'];
  if (units >= 2 * limit - 1) return ['almost twice the limit', 'bad'];
  return [`${(units / limit).toFixed(1)} × the limit`, 'warn'];
}

export function compareView() {
  const setting = readSetting();
  const rows = kinds.map((_, i) => ({ admitted: h('td'), denied: h('td'), most: h('td'), verdict: h('td', {}, 'press Run'), name: names[i] }));
  const run = h('button', { type: 'button', class: 'primary', onclick: () => begin() }, 'Run');
  const player = new Player({ size: 'compact',
    onrunning: (running) => { run.textContent = running ? 'Run again' : 'Run'; },
    onstate: (state) => state.lanes.forEach((lane, i) => tell(rows[i], lane)) });
  const tell = (row, lane) => {
    setText(row.admitted, lane.admitted);
    setText(row.denied, lane.denied);
    setText(row.most, lane.peak.units);
    const [text, name] = verdict(lane.peak.units, setting.limit);
    setText(row.verdict, text || 'press Run');
    row.verdict.className = name;
  };
  const link = () => setLink(`#compare?${readable(new URLSearchParams(clean({ limit: setting.limit, period: setting.period, ...setting.traffic })))}`);
  const header = h('th', { scope: 'col' });
  const caption = () => setText(header, `Most in any ${span(setting.period)}`);
  // begin gives the limiters new keys and sends the traffic for some periods.
  const begin = () => possible() && player.change(specs(setting), { ...setting.traffic, until: Math.min(setting.period * 4, 600000) });
  let timer;
  const change = () => {
    link();
    caption();
    clearTimeout(timer);
    timer = setTimeout(() => (player.running ? begin() : player.change(specs(setting))), 300);
  };
  const panel = h('section', { class: 'card panel', 'aria-labelledby': 'setting' }, h('h2', { id: 'setting' }, 'Setting'),
    h('div', { class: 'buttons' }, run), strangeLink(setting.strange), player.error, player.note,
    h('div', { class: 'editor' }, field('Limit: units', number(setting.limit, { min: 1, max: 50 }, (value) => { setting.limit = value; change(); })),
      field('Period in seconds', number(setting.period / 1000, { min: 1, max: 60, step: 'any' }, (value) => { setting.period = Math.round(value * 1000); change(); }))),
    trafficForm(setting.traffic, change, patterns),
    ...linkButton(link));
  const table = h('table', { class: 'verdicts' }, h('caption', { class: 'hidden' }, 'What each algorithm admitted'),
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Algorithm'), h('th', { scope: 'col' }, 'Admitted'), h('th', { scope: 'col' }, 'Denied'), header, h('th', { scope: 'col' }, 'Verdict'))),
    h('tbody', {}, ...rows.map((row, i) => h('tr', {}, h('th', { scope: 'row' }, row.name, h('small', {}, commands[i])), row.admitted, row.denied, row.most, row.verdict))));
  caption();
  player.setLanes(specs(setting), names);
  return {
    element: h('div', { class: 'view' },
      h('div', { class: 'lead' }, h('h1', {}, 'The same calls, three algorithms'),
        h('p', {}, 'All three have the same limit and get the same calls at the same time. A bracket marks where one admits more than its limit within one period.')),
      h('div', { class: 'columns' }, panel, h('section', { 'aria-label': 'Results' }, h('div', { class: 'card table-box', tabindex: 0, role: 'region', 'aria-label': 'Verdicts' }, table), player.element))),
    close: () => player.close(),
  };
}
