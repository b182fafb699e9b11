// A scene on the page: a chart for each limiter, and the time, which the reader holds.
import { h, setText, button, counted, still } from './dom.js';
import { Chart } from './chart.js';
import { because, play, replyOf } from './scene.js';
import { commandInput } from './command.js';

const titles = { THROTTLE: 'Rate with a burst (GCRA)', WINDOW: 'Sliding window', QUOTA: 'Fixed window', LEASE: 'Concurrent slots', ALL: 'Several at once' };
const seconds = (ms) => `${(ms / 1000).toFixed(ms < 600000 ? 2 : 0)} s`;

export class Stage {
  // heights are those of a chart's parts. With editable, the reader changes the commands and the time. onchange follows changes.
  constructor(scene, { heights = [104, 66, 60], editable, onchange }) {
    Object.assign(this, { scene, heights, editable, onchange, now: 0 });
    this.said = h('p', { class: 'said', 'aria-live': 'polite' });
    this.cards = h('div', { class: editable ? 'lanes' : 'card compact' });
    this.bar = editable && new Bar(this);
    this.element = h('section', { class: 'stage lanes', 'aria-label': 'Limiters' }, this.bar?.element, this.bar?.note, this.cards);
    this.build();
  }

  // build makes a card for each limiter, or for each client of one.
  build() {
    const { lanes } = play(this.scene);
    this.lanes = lanes.map(({ command }, i) => this.card(command, i, i + 1 === lanes.length));
    this.cards.replaceChildren(...this.lanes.map((lane) => lane.card), this.editable ? '' : this.said);
    this.again();
  }

  card(command, i, last) {
    const lane = { title: h('h2'), counts: h('p', { class: 'counts' }), error: h('p', { class: 'error', role: 'alert' }), said: this.editable ? h('p', { class: 'said', 'aria-live': 'polite' }) : this.said };
    lane.chart = new Chart({ heights: this.heights, axis: last || this.editable, marked: this.editable || this.scene.marked, oncall: (at) => this.call(at), onselect: (n) => this.say(lane, n) });
    const line = this.editable && commandInput(`Command of limiter ${i + 1}`, { value: command, oninput: (event) => { this.scene.limiters[i] = event.target.value; this.again(); } });
    const remove = this.editable && this.scene.limiters.length > 1 && button('Remove', () => { this.scene.limiters.splice(i, 1); this.build(); }, { class: 'quiet small', 'aria-label': `Remove limiter ${i + 1}` });
    lane.card = h('article', { class: this.editable ? 'card lane' : 'lane', 'aria-label': `Limiter ${i + 1}` }, h('div', { class: 'lane-head' }, lane.title, !line && h('code', { class: 'quiet-text' }, command), lane.counts, remove), line?.element, lane.error, lane.chart.element, this.editable && lane.said);
    return lane;
  }

  // again decides the scene, which has changed.
  again() {
    this.played = play(this.scene);
    this.lanes.forEach((lane, i) => {
      lane.result = this.played.lanes[i];
      setText(lane.title, this.scene.titles?.[i] ?? titles[lane.result.spec.kind] ?? 'A command');
      setText(lane.error, lane.result.error ?? '');
      lane.chart.show(lane.result, this.played.end, i);
      setText(lane.said, 'Point at a dot, or press the arrow keys in the chart, to see why. A click is a call.');
    });
    this.move(Math.min(this.now, this.played.end));
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
    if (!this.editable) for (const other of this.lanes) other.chart.select(-1);
    lane.chart.select(n);
    lane.said.replaceChildren(h('b', { class: call.denied ? 'bad' : 'good' }, `${seconds(call.at)}: ${because(lane.result, call)}.`), ' ', h('code', {}, call.line), ' ', h('small', {}, replyOf(call)));
  }

  // hold pauses at a time.
  hold(at) {
    this.stop();
    this.move(at);
  }

  move(now) {
    this.now = now;
    const before = this.lanes.map((lane) => lane.so);
    for (const lane of this.lanes) lane.so = lane.chart.move(now);
    this.lanes.forEach(({ counts, so }, i) => so !== before[i] && counts.replaceChildren(...counted(so.admitted, so.denied)));
    if (!this.frame) this.describe();
    this.bar?.show();
  }

  // go plays until a time, for wall ms. There are frames only while the time moves; with reduced motion there are none.
  go(until = this.played.end, wall = Math.min(until - this.now, 20000)) {
    this.stop();
    if (still.matches || wall <= 0) { this.move(until); return; }
    const speed = (until - this.now) / wall;
    let last;
    const tick = (time) => {
      const now = Math.min(this.now + Math.min(time - (last ?? time), 1000) * speed, until);
      last = time;
      this.frame = now < until ? requestAnimationFrame(tick) : 0;
      this.move(now);
      if (!this.frame) setText(document.getElementById('summary'), this.describe());
    };
    this.frame = requestAnimationFrame(tick);
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
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

// Bar is the control of a stage's time.
class Bar {
  constructor(stage) {
    this.stage = stage;
    this.button = button('Play', () => this.press(), { class: 'primary' });
    this.range = h('input', { type: 'range', min: 0, step: 'any', 'aria-label': 'Time', oninput: () => stage.hold(this.range.valueAsNumber) });
    this.time = h('output');
    this.mine = button('Remove my calls', () => { stage.scene.own = []; stage.again(); }, { class: 'quiet' });
    this.element = h('div', { class: 'card bar' }, h('div', { class: 'bar-buttons' }, this.button, this.mine), this.range, this.time);
    this.note = h('p', { class: 'quiet-text', role: 'status' });
  }

  press() {
    const { stage } = this;
    if (stage.frame) { stage.hold(stage.now); return; }
    if (stage.now >= stage.played.end) stage.move(0);
    stage.go();
    this.show();
  }

  show() {
    const { now, frame, scene, played: { end, cut } } = this.stage;
    setText(this.button, frame ? 'Pause' : now >= end ? 'Play again' : 'Play');
    setText(this.note, cut ? 'The traffic ends after 2,000 calls.' : '');
    this.mine.hidden = !scene.own?.length;
    this.range.max = end;
    this.range.value = now;
    setText(this.time, `${seconds(now)} of ${seconds(end)}`);
    this.range.setAttribute('aria-valuetext', this.time.textContent);
  }
}
