// The funnels: what is in each limiter of a scene at a time. All of it follows from the calls and the time, so that any instant
// can be drawn. Areas are true: a drop has the area that its units take in the funnel.
import { svg, id, span, setText, still } from './dom.js';

export const FALL = 400; // ms until a drop is in the funnel
const SINK = 250, BOUNCE = 900, NECK = 9;

// inside returns what is in a limiter at a time: the calls and their units that are still in, from the bottom to the top.
export function inside({ spec: { first }, calls, windows }, now) {
  let bands = [], last = 0;
  const leave = (at) => {
    let drained = (at - last) * (first.rate ?? 0);
    last = at;
    for (const band of bands) {
      const part = at < band.until ? Math.min(drained, band.units) : band.units;
      drained = Math.max(drained - part, 0);
      band.units -= part;
    }
    bands = bands.filter(({ units }) => units > 1e-6);
  };
  for (const call of calls) {
    if (call.at > now) break;
    leave(call.at);
    if (call.denied !== false) continue;
    const own = call.settles && bands.find((band) => band.call.id === call.settles);
    if (own?.held) Object.assign(own, { units: call.pour, until: Infinity, held: false });
    else if (call.pour > 0) bands.push({ call, units: call.pour, held: call.until > 0, until: call.until ?? (first.kind === 'QUOTA' ? windows.find(({ to }) => call.at < to)?.to : first.rate ? Infinity : call.at + first.period) ?? Infinity });
    else [own, ...bands.toReversed()].reduce((back, band) => { // given back
      const part = Math.min(back, band?.units ?? 0);
      if (part) band.units -= part;
      return back - part;
    }, -call.pour);
  }
  leave(now);
  return bands;
}

const sum = (bands) => bands.reduce((all, { units }) => all + units, 0);

export class Funnel {
  constructor() {
    this.picture = svg('svg', { class: 'chart funnel', role: 'img', onpointerdown: () => this.oncall() });
    new ResizeObserver(() => this.lanes && this.picture.clientWidth !== this.width && this.show(this.lanes, this.names, this.pace)).observe(this.picture);
  }

  // show shows limiters, each in a funnel. With a greater pace, drops fall in more ms of the scene.
  show(lanes, names, pace) {
    Object.assign(this, { lanes, names, pace, width: this.picture.clientWidth });
    const wide = (this.width || 760) / lanes.length, height = innerWidth < 550 ? 214 : 300;
    const half = Math.min(wide / 2 - (lanes.length > 1 ? 24 : 46), height * 0.62), rim = height * 0.4, neck = height - 46, deep = neck - rim;
    const hatch = svg('pattern', { id: this.hatch = id('funnel'), width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' }, svg('rect', { width: 2, height: 6, class: 'hatch' }));
    this.all = lanes.map((lane, i) => {
      const { first } = lane.spec, one = first.limit ? (half + NECK) * deep / first.limit : 0; // the area of a unit
      const funnel = { lane, name: names[i], first, one, half, rim, neck, slope: (half - NECK) / deep, middle: wide * (i + 0.5), water: svg('g'), drops: svg('g'), level: svg('text', { class: 'level', x: wide * (i + 0.5), y: height - 20, 'text-anchor': 'middle' }) };
      const m = funnel.middle, debt = Math.max(0, ...lane.calls.map(({ at }) => sum(inside(lane, at)) - first.limit)), top = y(funnel, first.limit + debt);
      lane.calls.forEach((call, n, calls) => { // those at one instant land one after another, and all are already falling
        call.nth = call.at === calls[n - 1]?.at ? calls[n - 1].nth + 1 : 0;
        call.land = call.at + FALL * pace * (1 - 1 / (1 + call.nth / 5));
      });
      const step = first.limit > 12 ? first.limit / 2 : 1, marks = Array.from({ length: first.limit / step + 1 || 0 }, (_, n) => {
        const at = y(funnel, n * step), x = m - side(funnel, at), room = lanes.length === 1 && (!n || y(funnel, (n - 1) * step) - at > 11 && at - rim > 11);
        return [svg('line', { class: 'mark', x1: x - 8, x2: x, y1: at, y2: at }), (room || n * step === first.limit) && svg('text', { x: x - 11, y: at + 4, 'text-anchor': 'end' }, n * step)];
      }).flat().filter(Boolean);
      const wall = svg('path', { class: 'funnel-wall', d: `M${m - half} ${rim}L${m - NECK} ${neck}${first.rate ? `v8m${2 * NECK} 0v-8` : `h${2 * NECK}`}L${m + half} ${rim}` });
      const above = debt > 0 && svg('path', { class: 'funnel-wall above', d: `M${m - half} ${rim}V${top}M${m + half} ${rim}V${top}` });
      return Object.assign(funnel, { parts: [funnel.water, ...marks, wall, above, funnel.drops, funnel.level, svg('text', { x: m, y: height - 4, 'text-anchor': 'middle' }, names[i])].filter(Boolean) });
    });
    this.picture.setAttribute('viewBox', `0 0 ${this.width || 760} ${height}`);
    this.picture.setAttribute('height', height);
    this.picture.replaceChildren(svg('defs', {}, hatch), ...this.all.flatMap(({ parts }) => parts));
  }

  draw(now) {
    const said = this.all.map((funnel) => this.drawOne(funnel, now));
    if (this.said !== String(said)) this.picture.setAttribute('aria-label', this.said = String(said));
  }

  // drawOne draws a funnel at an instant: what is inside is in the water, or on its way there. With
  // reduced motion nothing is on its way.
  drawOne(funnel, now) {
    const { lane, first, water, drops, level, middle, half, rim, name } = funnel;
    const bands = inside(lane, now), used = sum(bands);
    const sunk = ({ land }) => (still.matches ? 1 : Math.min(Math.max((now - land) / SINK / this.pace, 0), 1));
    let under = 0;
    water.replaceChildren(...bands.flatMap(({ call, units, held }) => {
      const low = y(funnel, under), high = y(funnel, under += units * sunk(call));
      const said = call.until && `${Math.round(units)} ${held ? 'held' : 'spent'}${held && !call.settled && now > call.at + 1500 ? ': its holder crashed' : ''}`;
      const text = said && low - high > 11 && said.length * 8 < 2 * side(funnel, (low + high) / 2) && said;
      return low - high < 0.01 ? [] : [svg('polygon', { class: `liquid${call.client ? ' second' : ''}`, points: slice(funnel, low, high) }),
        held && svg('polygon', { fill: `url(#${this.hatch})`, class: 'held', points: slice(funnel, low, high) }), text && svg('text', { class: 'inside', x: middle, y: (low + high) / 2 + 4, 'text-anchor': 'middle' }, text)].filter(Boolean);
    }));
    const surface = y(funnel, under), inAir = new Map(bands.map(({ call, units }) => [call, units * (1 - sunk(call))]));
    drops.replaceChildren(...lane.calls.filter(({ at, land }) => land - FALL * this.pace < now && now < Math.max(at, land) + BOUNCE * this.pace).flatMap((call) => {
      const units = call.denied ? call.wants : call.at > now ? call.pour : inAir.get(call);
      const r = Math.sqrt(units * funnel.one / Math.PI), part = (now - call.land) / FALL / this.pace + 1;
      if (!(r > 0.3) || call.charge || still.matches && !(call.denied && part > 1)) return [];
      const fits = (r * Math.hypot(1, funnel.slope) - NECK) / funnel.slope; // how high above the neck the walls are wide enough
      const to = call.denied ? rim - r : Math.min(surface, funnel.neck - Math.max(fits, 0));
      const cy = -r + (to + r) * Math.min(part, 1) ** 2, x = (((call.at * 7 + lane.calls.indexOf(call) * 4) % 11) / 10 - 0.5) * Math.max(side(funnel, cy) - r * Math.hypot(1, funnel.slope), 0);
      if (part <= 1 || !call.denied) return [svg('circle', { class: `drop${call.client ? ' second' : ''}${call.own ? ' mine' : ''}`, 'data-at': !call.denied && call.at, cx: middle + x, cy, r })];
      const away = still.matches ? 0.5 : Math.min((part - 1) * FALL / BOUNCE, 1), aside = x < 0 ? -1 : 1;
      return [svg('g', { class: 'off', transform: `translate(${middle + x + ((aside * (half - 6) - x) * away)} ${to - rim * (0.9 + 0.5 * (call.nth % 3)) * away * (1 - away)})`, opacity: Math.min(2 - 2 * away, 1) }, svg('circle', { class: 'drop denied', r: r * (1 - 0.7 * away) }),
        svg('text', { class: 'label bad', y: 4, 'text-anchor': 'middle' }, call.reply[3] < 0 ? 'never' : span(call.reply[3] * lane.spec.ms)))];
    }));
    const lock = lane.lockouts.find(({ from, to }) => from <= now && now < to);
    if (lock) drops.append(svg('rect', { class: 'locked', fill: `url(#${this.hatch})`, x: middle - half, width: 2 * half, y: rim - 12, height: 12 }), svg('text', { class: 'label bad', x: middle, y: rim + 16, 'text-anchor': 'middle' }, `locked: ${span(lock.to - now)}`));
    setText(level, first.limit ? `${used.toFixed(first.limit > 12 || !first.rate ? 0 : 1)} of ${first.limit} in use` : '');
    funnel.bands = bands;
    return `${name}: ${Math.ceil(used)} of ${first.limit} in use`;
  }
}

// y is the height of the surface over units: below the rim the funnel's area, and above it, in debt, that of its straight walls.
function y({ one, half, rim, neck, slope }, units) {
  const area = units * one, full = (half + NECK) * (neck - rim);
  return area > full ? rim - (area - full) / 2 / half : neck - (Math.sqrt(NECK * NECK + slope * area) - NECK) / slope;
}

const side = ({ half, rim, neck, slope }, at) => (at < rim ? half : NECK + slope * Math.max(neck - at, 0));

// slice is the part of a funnel between two heights.
function slice(funnel, low, high) {
  const { middle, rim } = funnel, levels = low > rim && high < rim ? [low, rim, high] : [low, high];
  const right = levels.map((at) => [middle + side(funnel, at), at]);
  return [...right, ...right.toReversed().map(([x, at]) => [2 * middle - x, at])].join(' ');
}
