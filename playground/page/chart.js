// The drawing of one limiter: calls as dots on a time line, and below them a curve of what is left. A scene is drawn once,
// up to its end. A time is then where the drawing is cut off.
import { h, svg, span, id, units } from './dom.js';

const em = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16; // above 1 if the reader wants larger letters
const GUTTER = 76 * em;
const RIGHT = 10;
const COLUMN = 9; // px: calls that are nearer than this are above each other
const TOP = 20 * em;
const { m: minute, h: hour, d: day } = units;
const steps = [1, 10, 100, 1000, 10000].flatMap((n) => [n, 2 * n, 5 * n]).filter((n) => n < minute / 2).concat([0.5, 1, 2, 5, 10, 15, 30].map((n) => n * minute), [1, 2, 6, 12].map((n) => n * hour), [1, 2, 5, 10, 20, 50, 100].map((n) => n * day));

export class Chart {
  // heights are those of the admitted calls, the denied calls and the curve. With axis, times are below the drawing. With marked,
  // it shows where more than the limit was admitted. oncall takes the time of a new call, onselect the number of a call.
  constructor({ heights, axis, marked, oncall, onselect }) {
    Object.assign(this, { axis, marked, onselect, id: id('chart') });
    [this.up, this.down, this.curve] = heights.map((height) => height * em);
    this.base = TOP + this.up;
    this.curveTop = this.base + this.down + this.down / 6;
    this.bottom = this.curveTop + this.curve;
    this.height = this.bottom + (axis ? 20 : 4) * em;
    const time = (event) => Math.min(Math.max((event.clientX - this.picture.getBoundingClientRect().left - GUTTER) / this.scale, 0), this.end);
    const dot = (event) => event.target.closest('[data-call]')?.dataset.call;
    this.picture = svg('svg', { class: 'chart', height: this.height, role: 'img', onpointermove: (event) => dot(event) && onselect(Number(dot(event))),
      onclick: (event) => (dot(event) ? onselect(Number(dot(event))) : oncall(time(event))) });
    const keys = { ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1), Enter: () => oncall(this.now) };
    this.element = h('div', { class: 'chart-box', tabindex: 0, role: 'group', onkeydown: (event) => {
      if (!keys[event.key]) return;
      keys[event.key]();
      event.preventDefault();
    } }, this.picture);
    new ResizeObserver(() => this.lane && this.element.clientWidth !== this.width && this.draw()).observe(this.element);
  }

  step(by) {
    const shown = this.lane.calls.filter((call) => call.at <= this.now).length;
    const next = this.selected < 0 ? (by > 0 ? 0 : shown - 1) : Math.min(Math.max(this.selected + by, 0), shown - 1);
    if (next >= 0) this.onselect(next);
  }

  select(i) {
    const dot = this.dots.get(i);
    this.selected = i;
    this.ring.replaceChildren(...(dot ? [svg('circle', { class: 'ring', cx: dot.x, cy: dot.y, r: dot.r + 3 })] : []));
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
    this.cut = svg('rect', { x: GUTTER - 6, y: 0, width: this.plot, height: this.height });
    this.past = svg('g', { 'clip-path': `url(#${this.id})` }, ...this.bands(), ...this.curves(), ...this.calls());
    this.marks = svg('g');
    this.ring = svg('g');
    this.cursor = svg('line', { class: 'cursor', y1: TOP - 6, y2: this.bottom });
    this.window = svg('rect', { class: 'window', y: TOP, height: this.bottom - TOP });
    this.picture.setAttribute('viewBox', `0 0 ${this.width} ${this.height}`);
    const hatch = svg('pattern', { id: `${this.id}-h`, width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' }, svg('rect', { width: 2, height: 6, class: 'hatch' }));
    this.picture.replaceChildren(svg('defs', {}, svg('clipPath', { id: this.id }, this.cut), hatch), this.window, ...this.frame(), this.past, this.marks, this.ring, this.cursor);
    this.move(this.now ?? 0);
    this.select(this.selected);
  }

  x(at) { return GUTTER + at * this.scale; }

  frame() {
    const line = (y, name) => svg('line', { class: name, x1: GUTTER, x2: GUTTER + this.plot, y1: y, y2: y });
    const label = (y, text, name = '') => svg('text', { class: `label ${name}`, x: GUTTER - 8, y, 'text-anchor': 'end' }, text);
    const step = steps.find((ms) => this.end / ms * 74 * em <= this.plot) ?? this.end;
    const ticks = Array.from({ length: Math.floor(this.end / step) + 1 }, (_, i) => [
      svg('line', { class: 'grid', x1: this.x(i * step), x2: this.x(i * step), y1: TOP, y2: this.bottom }),
      this.axis && svg('text', { class: 'label', x: this.x(i * step), y: this.height - 5, 'text-anchor': !i ? 'start' : this.x(i * step) > this.width - 30 ? 'end' : 'middle' }, i ? span(i * step) : '0')].filter(Boolean));
    const zero = this.y(0);
    return [...ticks.flat(), line(this.base, 'base'), line(this.curveTop, 'grid'), line(zero, 'base'), label(this.base - 10, 'admitted', 'good'), label(this.base + 18 * em, 'denied', 'bad'),
      ...(zero - this.curveTop > 24 * em && this.curveTop - this.base > 30 * em ? [label(this.curveTop + 4 * em, this.lane.curves.length > 1 ? 'full' : (this.limit ?? ''))] : []), label(zero + (this.debt ? -2 : 4) * em, '0'),
      ...(zero - this.curveTop > 36 * em ? [label((this.curveTop + zero) / 2 + 4 * em, 'left', 'curve-name')] : []),
      ...(this.debt > 0 ? [label(this.bottom + 4 * em, this.lane.curves.length > 1 ? 'debt' : -this.owed, 'bad')] : [])];
  }

  // y is the height of what is left, as a share of the limit. Debt is below zero.
  y(share) { return this.curveTop + ((1 - share) / (1 + this.debt)) * this.curve; }

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
    const band = ({ from, to }, name, more) => svg('rect', { class: name, x: this.x(from), width: (to - from) * this.scale, y: TOP, height: this.bottom - TOP, ...more });
    return [...this.lane.windows.flatMap((w, i) => [band(w, `quota${i % 2}`),
      svg('line', { class: 'edge', x1: this.x(w.to), x2: this.x(w.to), y1: TOP, y2: this.bottom }),
      svg('text', { x: this.x(Math.max(w.from, 0)) + 6, y: TOP + 12 * em }, (w.to - w.from) * this.scale > 70 * em ? 'a window' : '')]),
    ...[this.lane.more].filter(Boolean).flatMap((at) => [band({ from: at, to: this.end }, 'quota1'), svg('text', { class: 'label good', x: this.x(at) + 6, y: TOP + 12 * em }, 'SHARE is on')]),
    ...this.lane.lockouts.map((l) => band(l, 'locked', { fill: `url(#${this.id}-h)` })),
    ...this.lane.calls.filter((call) => call.slot).map((call) => svg('path', { class: 'slot', d: `M${this.x(call.at)} ${this.base - 3}H${this.x(call.slot)}m-4 -4l4 4l-4 4` }))];
  }

  // calls draws a dot for each call, its size by its units. Calls at about one time are above each other.
  calls() {
    const units = this.lane.calls.map((call) => Math.abs(call.units)).sort((a, b) => a - b);
    const usual = units[Math.floor(units.length / 2)] || 1;
    const columns = [], last = {};
    this.lane.calls.forEach((call, i) => {
      const x = +this.x(call.at).toFixed(1), { denied } = call;
      if (!(x - last[denied]?.x < COLUMN)) columns.push(last[denied] = { x, denied, dots: [] });
      last[denied].dots.push({ call, i, r: 3.3 * em * Math.min(Math.max(Math.sqrt(Math.abs(call.units) / usual), 0.6), 2.4) });
    });
    return columns.flatMap((column) => this.column(column));
  }

  // column presses its dots together a little if it is high. Where they still have no room, it writes how many more there are.
  column({ x, denied, dots }) {
    const drawn = [];
    const room = (denied ? this.down : this.up) - 4 * em;
    const pressed = Math.min(Math.max(room / dots.reduce((sum, { r }) => sum + 2 * r + 1.2, 0), 0.7), 1);
    let height = 2;
    for (const [n, { call, i, r }] of dots.entries()) {
      const next = height + (2 * r + 1.2) * pressed;
      if (next > room - (n + 1 < dots.length ? 10 * em : 0) && dots.length * 2 * r * pressed > room) {
        drawn.push(svg('text', { class: 'more', x, y: denied ? this.base + this.down : TOP + 10 * em, 'text-anchor': 'middle' }, `+${dots.length - n}`));
        break;
      }
      const y = this.base + (denied ? 1 : -1) * ((height + next) / 2 + 1);
      height = next;
      drawn.push(svg('g', { 'data-call': i, transform: `translate(${x} ${y.toFixed(1)})` }, svg('circle', { class: 'touch', r: r + 1 }), shape(call, r)));
      this.dots.set(i, { x, y, r });
    }
    return drawn;
  }

  // move shows the drawing up to a time, and returns what was counted until then.
  move(now) {
    this.now = now;
    this.cut.setAttribute('width', Math.max(now * this.scale + 12, 0));
    this.cursor.setAttribute('transform', `translate(${this.x(now)})`);
    const { kind, period = 0 } = this.lane.spec, from = kind === 'WINDOW' ? Math.max(now - period, 0) : now;
    this.window.setAttribute('x', this.x(from));
    this.window.setAttribute('width', (now - from) * this.scale);
    const so = this.lane.calls.findLast((call) => call.at <= now)?.so ?? this.lane.none;
    if (so.peak !== this.peak) this.mark(so.peak);
    return so;
  }

  // mark shows where more than the limit was admitted within one period.
  mark(peak) {
    this.peak = peak;
    this.marks.replaceChildren();
    if (!this.marked || !(peak.units > this.lane.spec.limit)) return;
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
