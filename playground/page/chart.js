// The drawing of one limiter: calls as dots on a time line, what remains as a curve, and the window over both. It draws
// what the server replied and decides nothing.
import { h, svg, span } from './dom.js';

const em = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16; // above 1 if the reader wants larger letters
const GUTTER = 76 * em;
const RIGHT = 10;
const COLUMN = 8; // px: calls that are nearer than this stand above each other
const LATE = 120; // ms that the drawing is behind, so that no call comes in from the future
const sizes = { full: { top: 20, up: 104, down: 56, gap: 14, curve: 60, axis: 20 }, compact: { top: 20, up: 84, down: 44, gap: 10, curve: 40, axis: 20 } };
const still = matchMedia('(prefers-reduced-motion: reduce)');

export class Chart {
  constructor(name, size = 'full') {
    this.size = Object.fromEntries(Object.entries(sizes[size]).map(([part, height]) => [part, height * em]));
    this.name = name;
    this.height = Object.values(this.size).reduce((a, b) => a + b);
    this.base = this.size.top + this.size.up;
    this.curveTop = this.base + this.size.down + this.size.gap;
    this.curveBottom = this.curveTop + this.size.curve;
    this.svg = svg('svg', { class: 'chart', height: this.height, role: 'img', 'aria-label': name });
    this.element = h('div', { class: 'chart-box' }, this.svg);
    new ResizeObserver(() => this.layout()).observe(this.element);
    this.configure({ spec: {}, seconds: 20 });
  }

  // configure takes the limiter and the length of the time line, and forgets all points.
  configure({ spec, seconds }) {
    this.spec = spec;
    this.length = seconds * 1000;
    this.clear();
  }

  clear() {
    this.shows = { several: false, second: false, shadow: false }; // what only some traffic or some policies have
    this.points = [];
    this.peak = null;
    this.drawn = 0;
    this.layout();
  }

  // layout draws all anew, for a new width.
  layout() {
    const width = this.element.clientWidth || 600;
    this.width = width;
    this.plot = width - GUTTER - RIGHT;
    this.scale = this.plot / this.length;
    this.columns = new Map();
    this.bands = svg('g');
    this.dots = svg('g');
    this.curves = svg('g');
    this.marks = svg('g');
    this.scrolled = svg('g', {}, this.bands, this.curves, this.dots, this.marks);
    const clip = `clip-${Math.random().toString(36).slice(2)}`;
    this.svg.setAttribute('viewBox', `0 0 ${width} ${this.height}`);
    this.svg.replaceChildren(
      svg('defs', {}, svg('clipPath', { id: clip }, svg('rect', { x: GUTTER, y: 0, width: this.plot, height: this.height })),
        svg('pattern', { id: `${clip}-h`, width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' }, svg('rect', { width: 2, height: 6, class: 'hatch' }))),
      ...this.window(), ...this.frame(), svg('g', { 'clip-path': `url(#${clip})` }, this.scrolled));
    this.hatch = `url(#${clip}-h)`;
    this.series = new Map();
    this.quotas = [];
    this.lockedUntil = -Infinity;
    for (const p of this.points) this.place(p);
    this.drawCurves();
    this.drawPeak();
  }

  // window is the span that a sliding window looks at: it stands still while the calls pass below it.
  window() {
    if (this.spec.kind !== 'window') return [];
    const width = Math.min(this.spec.period * this.scale, this.plot);
    const x = GUTTER + this.plot - width;
    const narrow = width < 90 * em; // then the text ends at the edge
    return [svg('rect', { class: 'window', x, y: this.size.top, width, height: this.curveBottom - this.size.top }),
      svg('text', { class: 'note', x: narrow ? x + width : x + 6, y: this.size.top + 12 * em, 'text-anchor': narrow ? 'end' : 'start' }, `the last ${span(this.spec.period)}`)];
  }

  frame() {
    const line = (y, name) => svg('line', { class: name, x1: GUTTER, x2: GUTTER + this.plot, y1: y, y2: y });
    const label = (y, text, name = '') => svg('text', { class: `label ${name}`, x: GUTTER - 8, y, 'text-anchor': 'end' }, text);
    const ticks = [];
    const parts = this.plot > 420 * em ? 4 : 2;
    for (let i = 0; i <= parts; i++) {
      const x = GUTTER + (this.plot * i) / parts;
      const ago = span((this.length * (parts - i)) / parts);
      ticks.push(svg('line', { class: 'grid', x1: x, x2: x, y1: this.size.top, y2: this.curveBottom }),
        svg('text', { class: 'label', x, y: this.height - 5, 'text-anchor': i === parts ? 'end' : i ? 'middle' : 'start' }, i === parts ? 'now' : i ? `−${ago}` : `${ago} ago`));
    }
    this.hint = svg('text', { class: 'hint', x: GUTTER + this.plot / 2, y: this.base - this.size.up / 2, 'text-anchor': 'middle' }, 'No call yet');
    this.full = label(this.curveTop + 9 * em, 'full');
    return [...ticks, this.hint, line(this.base, 'base'), line(this.curveTop, 'grid'), line(this.curveBottom, 'base'),
      label(this.base - 10, 'admitted', 'good'), label(this.base + 18 * em, 'denied', 'bad'),
      this.full, label((this.curveTop + this.curveBottom) / 2 + 7 * em, 'left', 'curve-name'), label(this.curveBottom, '0')];
  }

  push(point) {
    this.points.push(point);
    this.place(point);
  }

  place(p) {
    if (p.left?.length > 1) this.shows.several = true;
    if (p.key) this.shows.second = true;
    if (p.shadow) this.shows.shadow = true;
    if (p.left?.length) this.addToCurve(p);
    if (p.ends) this.addQuota(p.ends);
    if (p.locked) this.addLockout(p);
    if (p.call) this.addDot(p);
  }

  addDot(p) {
    const x = p.at * this.scale;
    const slot = Math.round(x / COLUMN);
    const side = p.call === 'denied' ? 'down' : 'up';
    const id = `${slot}${side}`;
    if (!this.columns.has(id)) this.columns.set(id, { side, x: slot * COLUMN, dots: [], at: p.at });
    const column = this.columns.get(id);
    this.hint.textContent = '';
    const dot = shape(p);
    column.dots.push(dot);
    this.dots.append(dot);
    if (p.wait) this.reserved(p);
    stack(column, this.size[side], this.base);
  }

  // reserved draws a line from a call to the slot that it got.
  reserved(p) {
    const y = this.base - 3;
    const from = p.at * this.scale;
    const to = (p.at + p.wait) * this.scale;
    const line = svg('path', { class: 'slot', d: `M${from} ${y}H${to}m-4 -4l4 4l-4 4` });
    line.until = p.at + p.wait;
    this.bands.append(line);
  }

  addToCurve(p) {
    p.left.forEach((left, i) => {
      const id = `${i}-${p.key}`;
      if (!this.series.has(id)) {
        this.series.set(id, { points: [], path: this.curves.appendChild(svg('path', { class: `curve curve${i + p.key}` })) });
      }
      this.series.get(id).points.push([p.at, Math.max(left, 0) / Math.max(p.limits[i], 1)]);
    });
    if (this.full) this.full.textContent = p.limits.length === 1 ? `${p.limits[0]}` : 'full';
  }

  // addQuota draws a fixed window, once. Replies of one window may tell its end with some milliseconds of difference.
  addQuota(ends) {
    const period = this.spec.period ?? this.spec.clauses?.find((c) => c.kind === 'quota')?.period;
    if (!period || this.quotas.some((q) => Math.abs(q - ends) < period / 4)) return;
    this.quotas.push(ends);
    const begins = ends - period;
    this.band(begins, ends, `quota quota${this.quotas.length % 2}`);
    const x = ends * this.scale;
    const line = svg('line', { class: 'edge', x1: x, x2: x, y1: this.size.top, y2: this.curveBottom });
    line.until = ends;
    const text = svg('text', { class: 'note', x: begins * this.scale + 6, y: this.size.top + 12 * em }, period * this.scale > 90 * em ? `a window` : '');
    text.until = ends;
    this.bands.append(line, text);
  }

  // addLockout draws a lockout, once: later denials tell the same end.
  addLockout(p) {
    const until = p.at + p.locked;
    if (until < this.lockedUntil + 100) return;
    this.lockedUntil = until;
    this.band(p.at, until, 'locked', this.hatch);
  }

  band(from, until, name, paint) {
    const rect = svg('rect', { class: `band ${name}`, x: from * this.scale, width: (until - from) * this.scale, y: this.size.top, height: this.curveBottom - this.size.top });
    if (paint) rect.setAttribute('fill', paint);
    rect.until = until;
    this.bands.append(rect);
  }

  // mark shows where more than the limit was admitted within one period.
  mark(peak) {
    if (peak && peak.units > this.spec.limit && peak.units !== this.peak?.units) {
      this.peak = peak;
      this.drawPeak();
    }
  }

  drawPeak() {
    this.marks.replaceChildren();
    if (!this.peak) return;
    const { from, to, units } = this.peak;
    const middle = ((from + to) / 2) * this.scale;
    const half = Math.max(((to - from) / 2) * this.scale, 6) + 4;
    this.marks.append(svg('path', { class: 'peak', d: `M${middle - half} ${this.size.top + 4}v-6h${2 * half}v6` }),
      svg('text', { class: 'peak-text', x: middle, y: 11 * em, 'text-anchor': 'middle' }, `${units} in ${span(Math.max(to - from, 1))}`));
  }

  // draw moves the time line to now, in milliseconds of the session. With reduced motion it moves once a second.
  draw(now) {
    if (still.matches && Math.abs(now - this.drawn) < 1000) return;
    this.drawn = now;
    const x = GUTTER + this.plot - (now - LATE) * this.scale;
    this.scrolled.setAttribute('transform', `translate(${x.toFixed(2)} 0)`);
  }

  // tidy draws the curves and forgets what has left the time line.
  tidy(now) {
    const oldest = now - this.length - 2000;
    if (this.points.length && this.points[0].at < oldest) {
      this.points = this.points.filter((p) => p.at >= oldest);
      for (const [id, column] of this.columns) {
        if (column.at < oldest) {
          column.dots.forEach((dot) => dot.remove());
          this.columns.delete(id);
        }
      }
      for (const band of [...this.bands.children]) if (band.until < oldest) band.remove();
      for (const series of this.series.values()) {
        const first = series.points.findIndex((p) => p[0] >= oldest);
        if (first > 1) series.points.splice(0, first - 1);
      }
      this.quotas = this.quotas.filter((ends) => ends >= oldest);
    }
    this.drawCurves(now);
  }

  drawCurves(now) {
    for (const { points, path } of this.series.values()) {
      let d = '';
      let last = null;
      for (const [at, share] of points) {
        const y = (this.curveBottom - share * (this.size.curve - 2)).toFixed(1);
        if (y === last) continue;
        const x = (at * this.scale).toFixed(1);
        d += last === null ? `M${x} ${y}` : `H${x}V${y}`;
        last = y;
      }
      if (d && now) d += `H${(now * this.scale).toFixed(1)}`;
      path.setAttribute('d', d);
    }
  }

  describe(text) {
    this.svg.setAttribute('aria-label', `${this.name}: ${text}`);
  }
}

// shape is the dot of a call. Admitted and denied calls differ in shape as well as in colour, and so do the two clients.
function shape(p) {
  const name = `dot ${p.call === 'denied' ? 'denied' : 'admitted'}${p.call === 'part' ? ' part' : ''}${p.shadow ? ' shadow' : ''}${p.client ? ' second' : ''}`;
  if (p.call === 'denied') return svg('path', { class: name, d: p.client ? 'M-2.9 0H2.9M0-2.9V2.9' : 'M-2.8-2.8L2.8 2.8M-2.8 2.8L2.8-2.8' });
  if (p.client) return svg('rect', { class: name, x: -3, y: -3, width: 6, height: 6 });
  return svg('circle', { class: name, r: 3.3 });
}

// stack places the dots of a column, away from the base line. A high column is pressed together.
function stack(column, room, base) {
  const n = column.dots.length;
  const away = Math.min(COLUMN, (room - 8) / n);
  const pressed = away < COLUMN && n > 1;
  const first = pressed ? 0 : n - 1;
  for (let i = first; i < n; i++) {
    const y = column.side === 'up' ? base - 6 - i * away : base + 7 + i * away;
    column.dots[i].setAttribute('transform', `translate(${column.x} ${y.toFixed(1)})`);
  }
}
