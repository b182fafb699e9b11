'use strict';
const { setTimeout: sleep } = require('node:timers/promises');

const AGAIN = [0, 1, 2, 4, 8]; // s: by then a client has a new connection
const MOST = 1000; // that are given back at a time
const WORDS = { upTo: ['UPTO'], force: ['FORCE'] };

// Asks a server: decide() returns the replies of parts, which are all taken or none.
exports.Server = class Server {
  #forgets = 0;

  constructor(ask) { this.ask = ask; }

  async decide(parts, mode, most) {
    if (parts.length === 1 && !parts[0].share) return [await this.one(parts[0], mode, most)];
    const reply = await this.all(parts, parts.map((part) => [part.key, clause(part)]));
    let from = 6;
    const replies = parts.map(({ limiter }) => reply.slice(from, from += limiter.bounds.kind === 'slots' ? 6 : 5));
    return Object.assign(replies, { decider: reply[5] });
  }

  // Sends clauses, [key, words] each, within the longest time limit of the parts.
  all(parts, clauses, ...last) {
    const words = clauses.flatMap(([key, words], i) => [...(i > 0 ? ['KEY', key] : []), ...words]);
    const timeout = Math.max(...parts.map(({ limiter }) => limiter.timeout));
    return this.ask('GO.ALL', clauses.map(([key]) => key), [...words, ...last, 'MS'], timeout);
  }

  // Returns the reply of one part.
  one({ limiter: { bounds, timeout }, key, n }, mode, most) {
    const words = [...bounds.words];
    words.push(...[n].flat(), ...(WORDS[mode] ?? (mode === 'reserve' ? ['RESERVE', most] : [])));
    if (bounds.lockout && mode === undefined) words.push('LOCKOUT', bounds.lockout);
    words.push(...last(bounds), 'MS');
    return this.ask(`GO.${bounds.command}${mode === 'peek' ? '_RO' : ''}`, key, words, timeout);
  }

  async release(key, id) { return (await this.ask('GO.RELEASE', key, [id]))[0]; }

  // Gives back what a call that ended in err may have taken. What isn't given back lapses.
  async forget(err, key, id) {
    if (err.unsent || this.#forgets === MOST) return;
    this.#forgets++;
    for (const pause of AGAIN) {
      if (pause > 0) await sleep(pause * 1000, undefined, { ref: false });
      const done = await this.release(key, id).then(() => true, ({ status }) => status === 500);
      if (done) break;
    }
    this.#forgets--;
  }

  async reset(key) { await this.ask('DEL', key); }
};

const last = ({ last, offset }) => (offset ? ['ALIGN', offset()] : last);

function clause({ limiter: { bounds }, n, share }, mode) {
  const lockout = bounds.lockout && n > 0 && mode === undefined ? ['LOCKOUT', bounds.lockout] : [];
  return [bounds.command, ...bounds.words, ...[n].flat(), ...lockout, ...last(bounds), ...(share ? ['SHARE', share] : [])];
}

exports.clause = clause;
