// A scene on the page: its charts, the table of verdicts, and the time, which the reader holds.
import { h, setText, span, button } from './dom.js';
import { Chart } from './chart.js';
import { because, play, replyOf } from './scene.js';
import { commandInput } from './complete.js';
import { print } from './program.js';

const speeds = [0.1, 0.25, 0.5, 1, 2, 5, 10, 60, 600, 3600, 36000];
const still = matchMedia('(prefers-reduced-motion: reduce)');
const titles = { THROTTLE: 'Rate with a burst (GCRA)', WINDOW: 'Sliding window', QUOTA: 'Fixed window', LEASE: 'Concurrent slots', ALL: 'Several at once' };
const seconds = (ms) => `${(ms / 1000).toFixed(ms < 600000 ? 2 : 0)} s`;

export class Stage {
  // onchange is called when the reader changes the scene by its commands, its charts or its buttons.
  constructor(scene, onchange) {
    this.scene = scene;
    this.onchange = () => {};
    this.now = 0;
    this.controls();
    this.note = h('p', { class: 'quiet-text', role: 'status' });
    this.body = h('tbody');
    this.most = h('th', { scope: 'col' });
    this.table = h('div', { class: 'card table-box', tabindex: 0, role: 'region', 'aria-label': 'Verdicts' }, h('table', { class: 'verdicts' },
      h('caption', { class: 'hidden' }, 'What each limiter admitted'),
      h('thead', {}, h('tr', {}, ...['Limiter', 'Admitted', 'Denied'].map((text) => h('th', { scope: 'col' }, text)), this.most, h('th', { scope: 'col' }, 'Verdict'))), this.body));
    this.cards = h('div', { class: 'lanes' });
    this.element = h('section', { class: 'stage lanes', 'aria-label': 'Limiters' }, this.bar, this.note, this.cards, this.table);
    this.build();
    if (still.matches) this.now = this.played.end;
    this.go(!still.matches);
    this.onchange = onchange;
  }

  controls() {
    this.button = button('Pause', () => this.go(!this.playing), { class: 'primary' });
    this.speed = h('span', { class: 'speed' });
    this.range = h('input', { type: 'range', min: 0, step: 'any', 'aria-label': 'Time', oninput: () => this.hold(this.range.valueAsNumber) });
    this.time = h('output');
    this.mine = button('Remove my calls', () => { this.scene.own = []; this.again(); }, { class: 'quiet' });
    this.bar = h('div', { class: 'card bar' }, h('div', { class: 'bar-buttons' }, this.button,
      button('−', () => this.faster(-1), { class: 'quiet', 'aria-label': 'Slower' }), this.speed, button('+', () => this.faster(1), { class: 'quiet', 'aria-label': 'Faster' }),
      button('Call now', () => this.call(this.now), { class: 'quiet' }), this.mine), this.range, this.time);
  }

  // build makes a card for each limiter.
  build() {
    this.lanes = this.scene.limiters.map((command, i) => this.card(command, i));
    this.cards.replaceChildren(...this.lanes.map((lane) => lane.card));
    this.again();
    this.factor = Math.max(speeds.findIndex((speed) => this.played.end / speed <= 25000), speeds.indexOf(1));
    this.faster(0);
  }

  card(command, i) {
    const lane = { title: h('h2'), counts: h('p', { class: 'counts' }), error: h('p', { class: 'error', role: 'alert' }), said: h('p', { class: 'said', 'aria-live': 'polite' }), info: h('code') };
    lane.chart = new Chart({ oncall: (at) => this.call(at), ondrag: (at) => this.hold(at), onselect: (n) => this.say(lane, n) });
    const line = commandInput({ label: `Command of limiter ${i + 1}`, value: command, onchange: (value) => { this.scene.limiters[i] = value; this.again(); } });
    lane.fold = h('details', { ontoggle: () => this.look(lane) }, h('summary', {}, 'GO.INFO at this time'), h('pre', {}, lane.info));
    const remove = this.scene.limiters.length > 1 && button('Remove', () => { this.scene.limiters.splice(i, 1); this.build(); }, { class: 'quiet small', 'aria-label': `Remove limiter ${i + 1}` });
    lane.card = h('article', { class: 'card lane', 'aria-label': `Limiter ${i + 1}` }, h('div', { class: 'lane-head' }, lane.title, lane.counts), line.element, lane.error, lane.chart.element, lane.said, h('div', { class: 'folds' }, lane.fold, remove));
    return lane;
  }

  // again decides the scene, which has changed.
  again() {
    this.played = play(this.scene);
    const { end, lanes, cut } = this.played;
    setText(this.note, cut ? 'The traffic ends after 2,000 calls.' : '');
    this.mine.hidden = !this.scene.own?.length;
    this.range.max = end;
    this.lanes.forEach((lane, i) => {
      lane.result = lanes[i];
      setText(lane.title, titles[lanes[i].spec.kind] ?? 'A command');
      setText(lane.error, lanes[i].error ?? '');
      lane.chart.show(lanes[i], end);
      setText(lane.said, 'Point at a dot, or press the arrow keys in the chart, to see why.');
    });
    const periods = new Set(lanes.map((lane) => lane.spec.period));
    setText(this.most, periods.size === 1 && lanes[0].spec.period ? `Most in any ${span(lanes[0].spec.period)}` : 'Most in a period');
    this.table.hidden = lanes.length < 2;
    this.move(Math.min(this.now, end));
    this.describe();
    this.onchange(this.scene);
  }

  // call adds a call of the reader's own, for every limiter.
  call(at) {
    this.scene.own = [...(this.scene.own ?? []), Math.round(at)].slice(-200).sort((a, b) => a - b);
    this.again();
    if (at > this.now) this.move(at);
    for (const lane of this.lanes) this.say(lane, lane.result.calls.findLastIndex((call) => call.own && call.at === Math.round(at)));
  }

  say(lane, n) {
    const call = lane.result.calls[n];
    if (!call || lane.chart.selected === n) return;
    lane.chart.select(n);
    lane.said.replaceChildren(h('b', { class: call.denied ? 'bad' : 'good' }, `${seconds(call.at)}: ${because(lane.result, call)}.`), ' ', h('code', {}, call.line), ' ', h('small', {}, replyOf(call)));
  }

  // look shows what is at the key at this time: the calls until then run again, and GO.INFO after them.
  look(lane) {
    const until = lane.result.calls.filter((call) => call.at <= this.now).map((call) => [call.at, call.line]);
    const key = (until.at(-1)?.[1] ?? lane.result.command).split(' ')[1] ?? '';
    if (lane.fold.open) setText(lane.info, print([...until, [this.now, `GO.INFO ${key}`]]));
  }

  // hold pauses at a time.
  hold(at) {
    this.now = at;
    this.go(false);
  }

  move(now) {
    this.now = now;
    this.range.value = now;
    const text = `${seconds(now)} of ${seconds(this.played.end)}`;
    setText(this.time, text);
    this.range.setAttribute('aria-valuetext', text);
    const before = this.lanes.map((lane) => lane.so);
    for (const lane of this.lanes) lane.so = lane.chart.move(now);
    if (this.lanes.some(({ so }, i) => so !== before[i])) this.count();
    if (this.playing) return;
    this.lanes.forEach((lane) => this.look(lane));
    this.describe();
  }

  // count shows what was admitted and denied until now, at each chart and in the table.
  count() {
    this.body.replaceChildren(...this.lanes.map(({ title, counts, result, so: { admitted, denied, peak } }) => {
      counts.replaceChildren(h('span', { class: 'good' }, h('b', {}, admitted), ' admitted'), h('span', { class: 'bad' }, h('b', {}, denied), ' denied'));
      const [text, name] = verdict(peak.units, result.spec.limit);
      return h('tr', {}, h('th', { scope: 'row' }, title.textContent, h('small', {}, result.command)),
        ...[admitted, denied, peak.units ? peak.units.toLocaleString('en') : ''].map((cell) => h('td', {}, cell)), h('td', { class: name }, text));
    }));
  }

  faster(by) {
    this.factor = Math.min(Math.max(this.factor + by, 0), speeds.length - 1);
    setText(this.speed, `${speeds[this.factor]}×`);
    this.last = undefined;
  }

  // go plays or pauses. There are frames only while the time moves.
  go(playing) {
    if (playing && this.now >= this.played.end) this.now = 0;
    this.playing = playing;
    this.last = undefined;
    setText(this.button, playing ? 'Pause' : this.now >= this.played.end ? 'Play again' : 'Play');
    cancelAnimationFrame(this.frame);
    if (playing) this.frame = requestAnimationFrame((time) => this.tick(time));
    else this.move(this.now);
  }

  // tick moves the time. With reduced motion it moves twice a second.
  tick(time) {
    this.frame = requestAnimationFrame((next) => this.tick(next));
    this.last ??= time;
    if (still.matches && time - this.last < 500) return;
    this.move(Math.min(this.now + Math.min(time - this.last, 1000) * speeds[this.factor], this.played.end));
    this.last = time;
    if (this.now < this.played.end) return;
    this.go(false);
    setText(document.getElementById('summary'), this.describe());
  }

  // describe gives the charts their texts for screen readers, and returns all of it.
  describe() {
    return this.lanes.map(({ title, chart, so }) => {
      const text = `${so.admitted} admitted, ${so.denied} denied`;
      chart.describe(title.textContent, text);
      return `${title.textContent}: ${text}.`;
    }).join(' ');
  }
}

// verdict says how the most that was admitted in one period compares with the limit.
export function verdict(units, limit) {
  if (!units || !limit) return ['', ''];
  if (units <= limit) return ['not above the limit', 'good'];
  if (units >= 2 * limit) return ['twice the limit', 'bad'];
  if (units >= 2 * limit - 1) return ['almost twice the limit', 'bad'];
  return [`${(units / limit).toFixed(1)} × the limit`, 'warn'];
}
