// A scene on the page: a chart for each limiter, and the time, which the reader holds.
import { h, setText, button, counted, still } from './dom.js';
import { Chart } from './chart.js';
import { because, play, replyOf } from './scene.js';
import { commandInput } from './command.js';
import { FALL } from './funnel.js';

const titles = { THROTTLE: 'Rate with a burst (GCRA)', WINDOW: 'Sliding window', QUOTA: 'Fixed window', LEASE: 'Concurrent slots', ALL: 'Several limits' };
const seconds = (ms) => `${(ms / 1000).toFixed(ms < 600000 ? 2 : 0)} s`;

export class Stage {
  // heights are those of a chart's parts. With editable, the reader changes the commands. Else a funnel shows the limiters, what
  // rains into them begins again at the end of the scene, and the commands are those of the last calls. onchange follows changes,
  // onmove the time.
  constructor(scene, { heights = [104, 66, 60], editable, funnel, onchange, onmove }) {
    Object.assign(this, { scene, heights, editable, funnel, onchange, onmove, now: 0 });
    this.said = h('p', { class: 'said', 'aria-live': 'polite' });
    this.cards = h('div', { class: editable ? 'lanes' : 'card compact' });
    this.bar = new Bar(this);
    this.lines = h('div', { class: 'lines' });
    this.element = h('section', { class: 'stage lanes', 'aria-label': 'Limiters' }, ...(editable ? [this.bar.element, this.bar.note, this.cards] : [h('div', { class: 'card compact' }, funnel.picture, this.lines, this.bar.element, this.said)]));
    this.element.stage = this;
    this.build();
  }

  // build makes a card for each limiter, or for each client of one.
  build() {
    const { lanes } = play(this.scene);
    this.lanes = lanes.map(({ command }, i) => this.card(command, i, i + 1 === lanes.length));
    this.cards.replaceChildren(...this.lanes.map((lane) => lane.card));
    this.lines.replaceChildren(...(this.editable ? [] : this.lanes.map(({ line }) => line)));
    this.again();
  }

  card(command, i, last) {
    const lane = { title: h('h2'), counts: h('p', { class: 'counts' }), error: h('p', { class: 'error', role: 'alert' }), said: this.editable ? h('p', { class: 'said', 'aria-live': 'polite' }) : this.said, line: h('code') };
    lane.chart = new Chart({ heights: this.heights, axis: last || this.editable, marked: this.editable || this.scene.marked, oncall: (at) => this.call(at), onselect: (n) => this.say(lane, n) });
    const line = this.editable && commandInput(`Command of limiter ${i + 1}`, { value: command, oninput: (event) => { this.scene.limiters[i] = event.target.value; this.again(); } });
    const remove = this.editable && this.scene.limiters.length > 1 && button('Remove', () => { this.scene.limiters.splice(i, 1); this.build(); }, { class: 'quiet small', 'aria-label': `Remove limiter ${i + 1}` });
    lane.card = h('article', { class: this.editable ? 'card lane' : 'lane', 'aria-label': `Limiter ${i + 1}` }, h('div', { class: 'lane-head' }, lane.title, lane.counts, remove), line?.element, lane.error, lane.chart.element, this.editable && lane.said);
    return lane;
  }

  // again decides the scene, which has changed.
  again() {
    this.played = play(this.scene);
    this.lanes.forEach((lane, i) => {
      lane.result = this.played.lanes[i];
      setText(lane.title, this.scene.titles?.[i] ?? titles[lane.result.spec.kind] ?? 'A command');
      setText(lane.error, lane.result.error ?? '');
      lane.chart.show(lane.result, this.played.end);
      setText(lane.said, 'Point at a dot, or press the arrow keys in the chart, to see why. A click is a call.');
    });
    this.pace = Math.max(this.played.end / 24000, 1);
    this.funnel?.show(this.played.whole, this.lanes.map(({ title }) => (this.scene.split ? 'The shared limit' : title.textContent.split(' (')[0])), this.pace);
    this.move(Math.min(this.now, this.played.end));
    this.onchange(this.scene);
  }

  // call adds calls of the reader's own, for every limiter.
  call(at = Math.min(this.now + FALL * this.pace, this.played.end), times = 1) {
    this.scene.own = [...(this.scene.own ?? []), ...Array(times).fill(Math.round(at))].slice(-200).sort((a, b) => a - b);
    this.again();
    if (at > this.now && !(this.funnel && this.frame)) this.move(at);
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
    this.bar.show();
    if (!this.funnel) return;
    this.funnel.draw(now);
    this.lanes.forEach(({ line, result: { calls } }) => say(line, (calls.findLast(({ at }) => at <= now + FALL * this.pace) ?? calls[0])?.line ?? ''));
    this.onmove(this);
  }

  // go plays to the end. There are frames only while the time moves. With reduced motion a funnel is drawn twice a second, and
  // there is nothing else to see on the way.
  go() {
    this.stop();
    if (still.matches && !this.funnel) { this.move(this.played.end); return; }
    let last;
    const tick = (time = performance.now()) => {
      const { end } = this.played, now = this.now + Math.min(time - (last ?? time), 1000) * this.pace;
      last = time;
      this.frame = now < end || this.funnel ? later() : 0;
      if (now > end + 1000) this.from();
      else this.move(this.funnel ? now : Math.min(now, end));
      if (!this.frame) setText(document.getElementById('summary'), this.describe());
    };
    const later = () => (still.matches ? setTimeout(tick, 500) : requestAnimationFrame(tick));
    this.frame = later();
  }

  // from begins again, without the reader's calls.
  from() {
    this.now = 0;
    this.scene.own = [];
    this.again();
  }

  stop() {
    (still.matches ? clearTimeout : cancelAnimationFrame)(this.frame);
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

// say shows a command, and marks the words that are new.
function say(element, line) {
  if (element.textContent === line) return;
  const before = element.textContent.split(' ');
  element.replaceChildren(...line.split(' ').flatMap((word, i) => [i ? ' ' : '', before[0] && word !== before[i] ? h('mark', {}, word) : word]));
}

// Bar is the control of a stage's time.
class Bar {
  constructor(stage) {
    this.stage = stage;
    this.button = button('Play', () => this.press(), { class: stage.editable ? 'primary' : 'quiet small' });
    this.range = h('input', { type: 'range', min: 0, step: 'any', 'aria-label': 'Time', oninput: () => stage.hold(this.range.valueAsNumber) });
    this.time = h('output');
    this.mine = button('Remove my calls', () => { stage.scene.own = []; stage.again(); }, { class: 'quiet' });
    this.element = h('div', { class: stage.editable ? 'card bar' : 'bar' }, h('div', { class: 'bar-buttons' }, this.button, this.mine), this.range, this.time);
    this.note = h('p', { class: 'quiet-text', role: 'status' });
  }

  press() {
    const { stage } = this;
    if (stage.frame) { stage.hold(stage.now); return; }
    if (stage.now >= stage.played.end) stage.editable ? stage.move(0) : stage.from();
    stage.go();
    this.show();
  }

  show() {
    const { now, frame, scene, played: { end, cut } } = this.stage;
    setText(this.button, frame ? 'Pause' : now >= end ? 'Play again' : 'Play');
    setText(this.note, cut ? 'The traffic ends after 2,000 calls.' : '');
    this.mine.hidden = !scene.own?.length || !this.stage.editable;
    this.range.max = end;
    this.range.value = now;
    setText(this.time, `${seconds(Math.min(now, end))} of ${seconds(end)}`);
    this.range.setAttribute('aria-valuetext', this.time.textContent);
  }
}
