// The drawing of one limiter: calls as dots on a time line, and below them a curve of what is left. A scene is drawn once,
// up to its end. Then a time is a place at which the drawing is cut off.
import { h, svg, span, id } from './dom.js';

const em = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16; // above 1 if the reader wants larger letters
const GUTTER = 76 * em;
const RIGHT = 10;
const COLUMN = 9; // px: calls that are nearer than this are above each other
const [TOP, UP, DOWN, GAP, CURVE, AXIS] = [20, 104, 66, 12, 60, 20].map((height) => height * em);
const BASE = TOP + UP;
const CURVE_TOP = BASE + DOWN + GAP;
const BOTTOM = CURVE_TOP + CURVE;
const HEIGHT = BOTTOM + AXIS;

export class Chart {
  // oncall is called with a time at which the reader wants to call, onselect with the number of a call, ondrag with a time.
  constructor({ oncall, onselect, ondrag }) {
    this.id = id('chart');
    this.picture = svg('svg', { class: 'chart', height: HEIGHT, role: 'img' });
    this.element = h('div', { class: 'chart-box', tabindex: 0, role: 'group' }, this.picture);
    this.onselect = onselect;
    this.pointer({ oncall, onselect, ondrag });
    this.element.addEventListener('keydown', (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by) this.step(by);
      else if (event.key === 'Enter') oncall(this.now);
      else return;
      event.preventDefault();
    });
    new ResizeObserver(() => this.lane && this.element.clientWidth !== this.width && this.draw()).observe(this.element);
  }

  // pointer: a click is a call, a drag moves the time, and a dot under the pointer shows its reply.
  pointer({ oncall, onselect, ondrag }) {
    const time = (event) => Math.min(Math.max((event.clientX - this.picture.getBoundingClientRect().left - GUTTER) / this.scale, 0), this.end);
    const dot = (event) => event.target.closest('[data-call]')?.dataset.call;
    let from = 0, dragged = false;
    this.picture.addEventListener('pointerdown', (event) => { from = event.clientX; dragged = false; });
    this.picture.addEventListener('pointermove', (event) => {
      if (!event.buttons && dot(event)) onselect(Number(dot(event)));
      dragged ||= event.buttons > 0 && Math.abs(event.clientX - from) >= 5;
      if (!event.buttons || !dragged) return;
      this.picture.setPointerCapture(event.pointerId);
      ondrag(time(event));
    });
    this.picture.addEventListener('click', (event) => {
      if (dot(event) && !dragged) onselect(Number(dot(event)));
      else if (!dragged) oncall(time(event));
    });
  }

  step(by) {
    const shown = this.lane.calls.filter((call) => call.at <= this.now).length;
    const next = this.selected < 0 ? (by > 0 ? 0 : shown - 1) : Math.min(Math.max(this.selected + by, 0), shown - 1);
    if (next >= 0) this.onselect(next);
  }

  select(i) {
    this.selected = i;
    this.ring.replaceChildren();
    const dot = this.dots.get(i);
    if (dot) this.ring.append(svg('circle', { class: 'ring', cx: dot.x, cy: dot.y, r: dot.r + 3 }));
  }

  // show draws a lane of scene.play.
  show(lane, end) {
    this.lane = lane;
    this.end = end;
    this.selected = -1;
    this.draw();
  }

  draw() {
    this.width = this.element.clientWidth || 600;
    this.plot = this.width - GUTTER - RIGHT;
    this.scale = this.plot / this.end;
    this.dots = new Map();
    this.peak = null;
    this.cut = svg('rect', { x: GUTTER - 6, y: 0, width: this.plot, height: HEIGHT });
    this.past = svg('g', { 'clip-path': `url(#${this.id})` }, ...this.bands(), ...this.curves(), ...this.calls());
    this.marks = svg('g');
    this.ring = svg('g');
    this.cursor = svg('line', { class: 'cursor', y1: TOP - 6, y2: BOTTOM });
    const period = this.lane.spec.period;
    this.window = this.lane.spec.kind === 'WINDOW' && period && svg('rect', { class: 'window', y: TOP, height: BOTTOM - TOP });
    this.picture.setAttribute('viewBox', `0 0 ${this.width} ${HEIGHT}`);
    const hatch = svg('pattern', { id: `${this.id}-h`, width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' }, svg('rect', { width: 2, height: 6, class: 'hatch' }));
    this.picture.replaceChildren(svg('defs', {}, svg('clipPath', { id: this.id }, this.cut), hatch), ...(this.window ? [this.window] : []), ...this.frame(), this.past, this.marks, this.ring, this.cursor);
    this.move(this.now ?? 0);
    this.select(this.selected);
  }

  x(at) { return GUTTER + at * this.scale; }

  frame() {
    const line = (y, name) => svg('line', { class: name, x1: GUTTER, x2: GUTTER + this.plot, y1: y, y2: y });
    const label = (y, text, name = '') => svg('text', { class: `label ${name}`, x: GUTTER - 8, y, 'text-anchor': 'end' }, text);
    const parts = this.plot > 420 * em ? 4 : 2;
    const ticks = Array.from({ length: parts + 1 }, (_, i) => [
      svg('line', { class: 'grid', x1: this.x((this.end * i) / parts), x2: this.x((this.end * i) / parts), y1: TOP, y2: BOTTOM }),
      svg('text', { class: 'label', x: this.x((this.end * i) / parts), y: HEIGHT - 5, 'text-anchor': i === parts ? 'end' : i ? 'middle' : 'start' }, i ? span((this.end * i) / parts) : '0')]);
    const zero = this.y(0);
    return [...ticks.flat(), line(BASE, 'base'), line(CURVE_TOP, 'grid'), line(zero, 'base'), label(BASE - 10, 'admitted', 'good'), label(BASE + 18 * em, 'denied', 'bad'),
      ...(zero - CURVE_TOP > 24 * em ? [label(CURVE_TOP + 4 * em, this.lane.curves.length > 1 ? 'full' : (this.limit ?? ''))] : []), label(zero + (this.debt ? -2 : 4) * em, '0'),
      ...(zero - CURVE_TOP > 36 * em ? [label((CURVE_TOP + zero) / 2 + 4 * em, 'left', 'curve-name')] : []),
      ...(this.debt > 0 ? [label(BOTTOM + 4 * em, this.lane.curves.length > 1 ? 'debt' : -this.owed, 'bad')] : [])];
  }

  // y is the height of what is left, as a share of the limit. Debt is below zero.
  y(share) { return CURVE_TOP + ((1 - share) / (1 + this.debt)) * CURVE; }

  curves() {
    const points = this.lane.curves.flat();
    this.limit = points[0]?.[2] ?? this.lane.spec.limit;
    this.owed = Math.max(0, ...points.map(([, left]) => -left));
    this.debt = Math.min(Math.max(0, ...points.map(([, left, limit]) => -left / limit)), 3);
    return this.lane.curves.map((curve, i) => {
      let d = '', last;
      for (const [at, left, limit] of curve) {
        const y = this.y(Math.max(left / limit, -this.debt)).toFixed(1);
        if (y === last) continue;
        d += last === undefined ? `M${this.x(at).toFixed(1)} ${y}` : `H${this.x(at).toFixed(1)}V${y}`;
        last = y;
      }
      return svg('path', { class: `curve curve${i}`, d: `${d}H${this.x(this.end)}` });
    });
  }

  bands() {
    const band = ({ from, to }, name, more) => svg('rect', { class: name, x: this.x(from), width: (to - from) * this.scale, y: TOP, height: BOTTOM - TOP, ...more });
    return [...this.lane.windows.flatMap((w, i) => [band(w, `quota${i % 2}`),
      svg('line', { class: 'edge', x1: this.x(w.to), x2: this.x(w.to), y1: TOP, y2: BOTTOM }),
      svg('text', { x: this.x(Math.max(w.from, 0)) + 6, y: TOP + 12 * em }, (w.to - w.from) * this.scale > 70 * em ? 'a window' : '')]),
    ...this.lane.lockouts.map((l) => band(l, 'locked', { fill: `url(#${this.id}-h)` })),
    ...this.lane.calls.filter((call) => call.slot).map((call) => svg('path', { class: 'slot', d: `M${this.x(call.at)} ${BASE - 3}H${this.x(call.slot)}m-4 -4l4 4l-4 4` }))];
  }

  // calls draws a dot for each call, its size by its units. Calls at about one time are above each other; of more than there
  // is room for, the number is written.
  calls() {
    const units = this.lane.calls.map((call) => Math.abs(call.units)).sort((a, b) => a - b);
    const usual = units[Math.floor(units.length / 2)] || 1;
    const columns = new Map();
    this.lane.calls.forEach((call, i) => {
      const slot = Math.round((call.at * this.scale) / COLUMN);
      const id = `${slot}${call.denied}`;
      if (!columns.has(id)) columns.set(id, { x: this.x(0) + slot * COLUMN, denied: call.denied, dots: [] });
      columns.get(id).dots.push({ call, i, r: 3.3 * em * Math.min(Math.max(Math.sqrt(Math.abs(call.units) / usual), 0.6), 2.4) });
    });
    return [...columns.values()].flatMap((column) => this.column(column));
  }

  // column presses its dots together a little if it is high.
  column({ x, denied, dots }) {
    const drawn = [];
    const room = (denied ? DOWN : UP) - 4 * em;
    const pressed = Math.min(Math.max(room / dots.reduce((sum, { r }) => sum + 2 * r + 1.2, 0), 0.7), 1);
    let height = 2;
    for (const [n, { call, i, r }] of dots.entries()) {
      const next = height + (2 * r + 1.2) * pressed;
      if (next > room - (n + 1 < dots.length ? 10 * em : 0) && dots.length * 2 * r * pressed > room) {
        drawn.push(svg('text', { class: 'more', x, y: denied ? BASE + DOWN : TOP + 10 * em, 'text-anchor': 'middle' }, `+${dots.length - n}`));
        break;
      }
      const y = BASE + (denied ? 1 : -1) * ((height + next) / 2 + 1);
      height = next;
      this.dots.set(i, { x, y, r });
      drawn.push(svg('g', { 'data-call': i, transform: `translate(${x} ${y.toFixed(1)})` }, svg('circle', { class: 'touch', r: r + 1 }), shape(call, r)));
    }
    return drawn;
  }

  // move shows the drawing up to a time, and returns what was counted until then.
  move(now) {
    this.now = now;
    const x = this.x(now);
    this.cut.setAttribute('width', Math.max(now * this.scale + 12, 0));
    this.cursor.setAttribute('x1', x);
    this.cursor.setAttribute('x2', x);
    if (this.window) {
      const from = Math.max(now - this.lane.spec.period, 0);
      this.window.setAttribute('x', this.x(from));
      this.window.setAttribute('width', (now - from) * this.scale);
    }
    const so = this.lane.calls.findLast((call) => call.at <= now)?.so ?? this.lane.none;
    if (so.peak !== this.peak) this.mark(so.peak);
    return so;
  }

  // mark shows where more than the limit was admitted within one period.
  mark(peak) {
    this.peak = peak;
    this.marks.replaceChildren();
    if (!(peak.units > this.lane.spec.limit)) return;
    const half = Math.max(((peak.to - peak.from) / 2) * this.scale, 6) + 4;
    const middle = this.x((peak.from + peak.to) / 2);
    const text = `${peak.units.toLocaleString('en')} in ${span(Math.max(peak.to - peak.from, 1))}`;
    this.marks.append(svg('path', { class: 'peak', d: `M${middle - half} ${TOP + 4}v-6h${2 * half}v6` }),
      svg('text', { class: 'peak-text', x: Math.min(Math.max(middle, GUTTER + 40), this.width - 50), y: 11 * em, 'text-anchor': 'middle' }, text));
  }

  describe(name, text) {
    this.element.setAttribute('aria-label', `${name}. The arrow keys go from call to call, Enter calls at the time shown.`);
    this.picture.setAttribute('aria-label', `${name}: ${text}`);
  }
}

// shape is the dot of a call. Admitted and denied calls differ in shape as well as in colour, and so do the two clients.
function shape(call, r) {
  const name = `dot ${call.denied ? 'denied' : 'admitted'}${call.taken < call.units || call.units <= 0 ? ' part' : ''}${call.client ? ' second' : ''}`;
  const a = r * (call.client ? 0.6 : 0.85); // so that a column of pluses is not a line
  if (call.denied) return svg('path', { class: name, d: call.client ? `M${-a} 0H${a}M0 ${-a}V${a}` : `M${-a} ${-a}L${a} ${a}M${-a} ${a}L${a} ${-a}` });
  if (call.client) return svg('rect', { class: name, x: -r * 0.9, y: -r * 0.9, width: r * 1.8, height: r * 1.8 });
  return svg('circle', { class: name, r });
}
