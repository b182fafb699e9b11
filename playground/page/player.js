// Lanes that a session feeds: the part that Try and Compare share.
import { Session } from './session.js';
import { Lane } from './lane.js';
import { setText, h } from './dom.js';

const announceEvery = 5000;

export class Player {
  constructor({ size, onrunning = () => {}, onstate = () => {} }) {
    this.size = size;
    this.onrunning = onrunning;
    this.onstate = onstate;
    this.lanes = [];
    this.error = h('p', { class: 'error', role: 'alert' });
    this.note = h('p', { class: 'quiet-text note-skipped' });
    this.element = h('div', { class: 'lanes' });
    this.session = new Session({ onstate: (state) => this.take(state), onerror: (text) => setText(this.error, text) });
    this.frame = requestAnimationFrame(() => this.draw());
    this.announced = performance.now();
  }

  // setLanes shows these limiters. Controls are the element that changes a limiter, if there is one.
  setLanes(specs, names, controls = [], traffic) {
    this.lanes = specs.map((spec, i) => new Lane({ name: names[i], size: this.size, controls: controls[i] }));
    this.element.replaceChildren(...this.lanes.map((lane) => lane.element));
    return this.change(specs, traffic);
  }

  // change gives the lanes other parameters. What was drawn is forgotten, because the limiters begin anew.
  change(specs, traffic) {
    const seconds = timeLine(specs);
    this.lanes.forEach((lane, i) => lane.configure(specs[i], seconds));
    const change = this.waiting = {};
    return this.session.setLanes(specs, traffic).then(() => { if (this.waiting === change) this.waiting = null; });
  }

  take(state) {
    this.follow(state.now);
    if (this.running !== state.running) this.onrunning(this.running = state.running);
    setText(this.note, state.skipped ? `${state.skipped} calls were not sent: the playground sends at most 200 per second.` : '');
    if (this.waiting || state.lanes?.length !== this.lanes.length) return;
    if (this.era !== state.era) {
      this.era = state.era;
      this.lanes.forEach((lane) => lane.chart.clear());
    }
    for (const point of state.points ?? []) this.lanes[point.lane].chart.push(point);
    state.lanes.forEach((lane, i) => this.lanes[i].show(lane, state.titles[i]));
    state.infos?.forEach((infos, i) => this.lanes[i].showInfo(infos));
    this.lanes.forEach((lane) => lane.chart.tidy(state.now));
    this.onstate(state);
    this.announce();
  }

  // follow keeps this page's idea of the session's clock near the server's.
  follow(now) {
    const offset = now - performance.now();
    this.offset = this.offset === undefined || Math.abs(offset - this.offset) > 250 ? offset : this.offset + (offset - this.offset) / 10;
  }

  draw() {
    if (this.offset !== undefined) for (const lane of this.lanes) lane.chart.draw(performance.now() + this.offset);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  // announce tells screen readers now and then what changed.
  announce() {
    if (performance.now() - this.announced < announceEvery) return;
    this.announced = performance.now();
    this.lanes.forEach((lane) => lane.chart.describe(lane.sentence()));
    setText(document.getElementById('summary'), this.lanes.map((lane) => `${lane.heading.textContent}: ${lane.sentence()}.`).join(' '));
  }

  close() {
    cancelAnimationFrame(this.frame);
    this.session.close();
  }
}

// timeLine is how many seconds the charts show: some periods, but not too long to see a single call.
function timeLine(specs) {
  const periods = specs.flatMap((spec) => spec.clauses ?? [spec]).map((spec) => spec.period || 5000);
  return Math.min(Math.max(Math.ceil((Math.max(...periods) * 3) / 4000) * 4, 12), 60);
}
