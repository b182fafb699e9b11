// The funnel: a limiter that the reader calls by clicks. There are frames only while a call falls or bounces off, or it drains.
import { h, svg, id, setText, span, counted, still } from './dom.js';
import { replyOf } from './scene.js';
import { run } from './program.js';

const LIMIT = 5, FALL = 380, BOUNCE = 900, APART = 90;
const line = `GO.THROTTLE you ${LIMIT - 1} 1 1s MS`;

export class Funnel {
  // onseen gets 0 when a call was admitted, 1 when one was denied, 2 when one is admitted after that. clock returns ms.
  constructor(onseen, clock = () => performance.now()) {
    Object.assign(this, { onseen, clock, origin: clock(), asked: [], admitted: [], balls: [], empty: 0, seen: 0, sum: [0, 0], clip: id('funnel') });
    this.picture = svg('svg', { class: 'chart funnel', role: 'img', onpointerdown: (event) => this.call(1, (event.clientX - this.picture.getBoundingClientRect().left - this.middle) / this.half) });
    this.counts = h('p', { class: 'counts' });
    this.said = h('p', { class: 'said', role: 'status' }, 'Click into the picture, or press the button.');
    this.element = h('section', { class: 'stage lanes', 'aria-label': 'Funnel' }, h('div', { class: 'card compact' },
      h('article', { class: 'lane' }, h('div', { class: 'lane-head' }, h('h2', {}, 'The limiter'), h('code', { class: 'quiet-text' }, line), this.counts), this.picture), this.said));
    this.arrived();
    new ResizeObserver(() => this.layout()).observe(this.picture);
  }

  // call makes calls at this instant, which fall from x: -1 is the left end of the rim, 1 the right one. Those made before the program has arrived wait for it.
  call(n = 1, x = Math.random() - 0.5) {
    const now = this.clock() - this.origin;
    for (let i = 0; i < n; i++) this.asked.push({ at: now, from: now + i * APART, x: n > 1 ? ((i * 7) % 11) / 10 - 0.5 : Math.min(Math.max(x, -0.85), 0.85) });
    this.arrived();
  }

  // arrived lets the limiter decide what was asked.
  arrived() {
    while (this.asked.length) {
      const call = this.asked[0];
      if (call.at >= this.empty) this.admitted = []; // the limiter is as new
      const reply = run([...this.admitted, [call.at, line]]).at(-1); // what was denied has changed nothing
      if (!reply) break;
      this.asked.shift();
      call.denied = reply[0] === 1;
      call.wait = reply[3];
      this.sum[reply[0]]++;
      if (!call.denied) this.admitted.push([call.at, line]);
      this.empty = call.at + reply[4];
      if (still.matches) this.balls = this.balls.filter((ball) => ball.denied && ball.at === call.at);
      this.balls.push(call);
      this.replied(call, reply);
    }
    this.counts.replaceChildren(...counted(...this.sum));
    this.go();
  }

  replied(call, reply) {
    this.said.replaceChildren(h('b', { class: call.denied ? 'bad' : 'good' }, call.denied ? `Denied: wait ${span(call.wait)}.` : 'Admitted.'), ' ', h('small', {}, replyOf({ reply, line })));
    while (this.seen === (call.denied ? 1 : this.seen && 2) && this.seen < 3) this.onseen(this.seen++);
  }

  layout() {
    this.width = this.picture.clientWidth || 760;
    this.height = this.width < 500 ? 290 : 480;
    this.middle = this.width / 2;
    this.half = Math.min(this.width * 0.33, 260);
    this.rim = this.height * 0.3;
    this.neck = this.height * 0.8;
    this.picture.setAttribute('viewBox', `0 0 ${this.width} ${this.height}`);
    this.picture.setAttribute('height', this.height);
    const { middle: m, half, rim, neck, height } = this;
    const shape = `M${m - half} ${rim}L${m - 12} ${neck}v${height * 0.07}M${m + half} ${rim}L${m + 12} ${neck}v${height * 0.07}`;
    const inside = `M${m - half} ${rim}L${m - 12} ${neck}v${height * 0.07}h24v${-height * 0.07}L${m + half} ${rim}z`;
    this.liquid = svg('rect', { class: 'liquid', x: m - half, width: 2 * half, height });
    this.surface = svg('line', { class: 'surface', x1: m - half, x2: m + half });
    this.stream = svg('line', { class: 'stream', x1: m, x2: m, y1: neck + height * 0.07, y2: height });
    this.level = svg('text', { class: 'level', x: m, 'text-anchor': 'middle' });
    this.flying = svg('g');
    const marks = Array.from({ length: LIMIT + 1 }, (_, i) => {
      const y = this.y(i), side = this.side(y);
      return [svg('line', { class: 'mark', x1: m - side - 14, x2: m - side, y1: y, y2: y }), svg('text', { x: m - side - 20, y: y + 4, 'text-anchor': 'end' }, i === LIMIT ? `full: ${LIMIT}` : i)];
    }).flat();
    this.picture.replaceChildren(svg('defs', {}, svg('clipPath', { id: this.clip }, svg('path', { d: inside }))),
      svg('g', { 'clip-path': `url(#${this.clip})` }, this.liquid, this.surface), this.stream, ...marks, svg('path', { class: 'funnel-wall', d: shape }), this.level, this.flying,
      svg('text', { class: 'label', x: m + 26, y: height - 10 }, '1 drains each second'));
    this.draw(this.clock() - this.origin);
  }

  // y is the height of a level; side is how far the wall is from the middle there.
  y(units) { return this.neck - ((this.neck - this.rim - 10) * units) / LIMIT; }

  side(y) { return 12 + ((this.half - 12) * (this.neck - y)) / (this.neck - this.rim); }

  // go draws until nothing moves any more. With reduced motion it draws twice a second, and calls don't fly.
  go() {
    if (this.frame || !this.picture.isConnected || !this.flying) return;
    const tick = () => {
      this.frame = 0;
      if (this.draw(this.clock() - this.origin)) this.frame = still.matches ? setTimeout(tick, 500) : requestAnimationFrame(tick);
    };
    tick();
  }

  stop() {
    (still.matches ? clearTimeout : cancelAnimationFrame)(this.frame);
  }

  // draw draws an instant, and reports whether the next one differs.
  draw(now) {
    if (!still.matches) this.balls = this.balls.filter(({ from, denied }) => now < from + FALL + (denied ? BOUNCE : 300));
    const rising = still.matches ? 0 : this.balls.reduce((sum, { from, denied }) => sum + (denied ? 0 : 1 - Math.min(Math.max((now - from - FALL * 0.9) / 300, 0), 1)), 0);
    const used = Math.max((this.empty - now) / 1000, 0);
    const shown = Math.max(used - rising, 0), y = this.y(shown);
    this.liquid.setAttribute('y', shown ? y : this.height);
    for (const end of ['y1', 'y2']) this.surface.setAttribute(end, shown ? y : this.height * 2);
    this.stream.classList.toggle('dry', !shown);
    this.stream.setAttribute('stroke-dashoffset', still.matches ? 0 : -now / 12);
    this.level.setAttribute('y', Math.min(y + 24, this.neck - 50));
    setText(this.level, shown ? `${shown.toFixed(1)} in use` : '');
    this.picture.setAttribute('aria-label', `A funnel with ${shown.toFixed(0)} of ${LIMIT} units in use.`);
    this.flying.replaceChildren(...this.balls.slice(0, still.matches ? 3 : 99).flatMap((ball, i) => (still.matches ? this.bounced(ball, 0.4 + 0.12 * i) : this.fly(ball, now))));
    return used > 0 || !still.matches && this.balls.length > 0;
  }

  fly(ball, now) {
    const part = (now - ball.from) / FALL;
    if (part < 0) return [];
    if (part > 1) return ball.denied ? this.bounced(ball, (now - ball.from - FALL) / BOUNCE) : [];
    const to = ball.denied ? this.rim - 4 : this.y(Math.max((this.empty - now) / 1000 - 0.5, 0));
    return [svg('circle', { class: 'ball', cx: this.middle + ball.x * this.half, cy: 12 + (to - 12) * part * part, r: 11 })];
  }

  // bounced is a denied call on its way off, with its wait. Of several at once only some have room for words.
  bounced({ x, wait, denied, at, from }, part) {
    if (!denied || part > 1) return [];
    const away = x < 0 ? -1 : 1, far = away * (0.95 + 60 / this.half);
    const at0 = Math.min(Math.max(this.middle + (x + (far - x) * part) * this.half, 86), this.width - 86), y = this.rim - 4 - 4 * this.rim * 0.75 * part * (1 - part) + this.rim * 1.2 * part * part;
    const words = Math.round((from - at) / APART) % 4 === 0 || still.matches;
    return [svg('g', { class: 'off', transform: `translate(${at0.toFixed(1)} ${y.toFixed(1)})`, opacity: still.matches ? 1 : Math.min(2 - 2 * part, 1).toFixed(2) }, svg('path', { class: 'dot denied', d: 'M-7 -7L7 7M-7 7L7 -7' }),
      words && svg('text', { class: 'label bad', x: 14 * away, y: 4, 'text-anchor': away < 0 ? 'end' : 'start' }, `wait ${span(wait)}`))];
  }
}
