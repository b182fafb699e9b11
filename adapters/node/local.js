'use strict';
const { end, share } = require('./limit.js');

const MOST_KEYS = 100_000;
const TINY = 1e-6; // of a unit: what sums of fractions are off by

// How each kind counts. at() makes a cell's state that of now; wait() is how long until n more units fit.
const KINDS = {
  rate: {
    fresh: () => ({ used: 0, time: 0, locked: 0 }),
    at(c, { count, period }, now) {
      c.used = Math.max(0, c.used - (now - c.time) * count / period);
      c.time = now;
    },
    wait: (c, { units, count, period }, n, now) => Math.max((c.used + n - units - TINY) * period / count, c.locked - now),
    add(c, n) { c.used = Math.max(0, c.used + n); },
    rest: (c, { count, period }, now) => Math.max(c.used * period / count, c.locked - now),
  },
  window: {
    fresh: () => ({ used: 0, log: [] }),
    at(c, { period }, now) { while (c.log[0]?.time <= now - period) c.used -= c.log.shift().n; },
    wait(c, { units, period }, n, now) {
      let over = c.used + n - units;
      return over <= 0 ? 0 : c.log.find((entry) => (over -= entry.n) <= 0).time + period - now;
    },
    add(c, n, { units, period }, now) {
      const last = c.log.at(-1);
      if (n > 0 && units > 120 && last && Math.floor(last.time * 120 / period) === Math.floor(now * 120 / period)) {
        last.n += n; // calls of one 120th of a period share an entry, which ends when the newest does
        last.time = now;
      } else if (n > 0) c.log.push({ time: now, n });
      for (let back = -n; back > 0 && c.log.length > 0;) {
        const part = Math.min(back, c.log[0].n);
        back -= part;
        if ((c.log[0].n -= part) === 0) c.log.shift();
      }
      c.used = c.log.reduce((sum, entry) => sum + entry.n, 0);
    },
    rest: (c, { period }, now) => (c.used > 0 ? c.log.at(-1).time + period - now : 0),
  },
  quota: {
    fresh: () => ({ used: 0, end: 0 }),
    at(c, bounds, now) { if (now >= c.end) c.used = 0; },
    wait: (c, { units }, n, now) => (c.used + n <= units ? 0 : c.end - now),
    add(c, n, bounds, now) {
      if (c.used === 0) c.end = end(bounds, now);
      c.used = Math.max(0, c.used + n);
    },
    rest: (c, bounds, now) => (c.used > 0 ? c.end - now : 0),
  },
  slots: {
    fresh: () => ({ used: 0, ids: new Map() }),
    at(c, bounds, now) {
      for (const [id, lapses] of c.ids) if (lapses <= now) c.ids.delete(id);
      c.used = c.ids.size;
    },
    wait: (c, { units }, id, now) => (c.ids.has(id) || c.used < units ? 0 : Math.min(...c.ids.values()) - now),
    add(c, id, { period }, now) {
      c.ids.set(id, now + period);
      c.used = c.ids.size;
    },
    rest: (c, bounds, now) => Math.max(0, ...[...c.ids.values()].map((lapses) => lapses - now)),
  },
};

// Decides in this process: for failLocal, and for memory:. It has the verbs of Server in server.js.
exports.Local = class Local {
  #cells = new Map(); // by key: the one that was used least recently comes first

  constructor(part) { this.part = part; } // of each limit; by default as the limiter says

  async one(part, mode, most) { return (await this.decide([part], mode, most))[0]; }

  // Returns the replies of parts, which are all taken or none.
  async decide(parts, mode, most = 0) {
    const now = Date.now();
    const asked = parts.map(({ limiter, key, n }) => {
      const bounds = share(limiter.bounds, this.part ?? limiter.share);
      const [what, slots] = [n].flat(); // an id, and 0 if it is only renewed
      return { bounds, n: what, renews: slots === 0, cell: this.#cell(bounds, key, now), ...KINDS[bounds.kind] };
    });
    const replies = asked.map((part) => judge(part, mode, most, now));
    if (replies.every(([limited]) => limited === 0)) {
      if (mode !== 'peek') asked.forEach((part, i) => part.add(part.cell, mode === 'upTo' && part.n > 0 ? replies[i][5] : part.n, part.bounds, now));
    } else asked.forEach((part, i) => lock(part, replies[i], now));
    return asked.map(({ bounds, cell, rest }, i) => {
      const [limited, , , retry, , sixth] = replies[i];
      const left = Math.floor(Math.max(0, bounds.units - cell.used) + TINY);
      return [limited, bounds.units, cell.locked > now ? 0 : left, retry, Math.ceil(rest(cell, bounds, now)), sixth];
    });
  }

  async release(key, id) { return this.#cells.get(key)?.ids.delete(id) ? 1 : 0; }

  async reset(key) { this.#cells.delete(key); }

  #cell(bounds, key, now) {
    const cell = this.#cells.get(key) ?? KINDS[bounds.kind].fresh();
    this.#cells.delete(key);
    this.#cells.set(key, cell);
    if (this.#cells.size > MOST_KEYS) this.#cells.delete(this.#cells.keys().next().value);
    KINDS[bounds.kind].at(cell, bounds, now);
    return cell;
  }
};

function judge({ bounds, cell, n, renews, wait }, mode, most, now) {
  const left = Math.floor(Math.max(0, bounds.units - cell.used) + TINY);
  const renewed = bounds.kind === 'slots' && cell.ids.has(n) ? 1 : 0;
  if (mode === 'force' || n < 0) return [0, 0, 0, -1, 0, n];
  if (renews && !renewed) return [1, 0, 0, -1, 0, 0];
  if (n > bounds.units && mode !== 'upTo') return [1, 0, 0, -1, 0, 0];
  const after = Math.ceil(wait(cell, bounds, mode === 'upTo' ? Math.min(n, left + 1) : n, now));
  if (mode === 'upTo') return [left > 0 && !(cell.locked > now) ? 0 : 1, 0, 0, after > 0 ? after : -1, 0, Math.min(n, left)];
  if (mode === 'reserve') return after <= most ? [0, 0, 0, -1, 0, Math.max(0, after)] : [1, 0, 0, after - most, 0, -1];
  return after > 0 ? [1, 0, 0, after, 0, renewed] : [0, 0, 0, -1, 0, bounds.kind === 'slots' ? renewed : n];
}

// A part that denies begins its lockout.
function lock({ bounds, cell }, reply, now) {
  if (!bounds.lockout || !reply[0] || cell.locked > now || reply[3] < 0) return;
  cell.locked = now + bounds.lockout;
  reply[3] = Math.max(reply[3], bounds.lockout);
}
