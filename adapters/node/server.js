'use strict';

const WORDS = { upTo: ['UPTO'], force: ['FORCE'] };

// Asks a server: decide() returns the replies of parts, which are all taken or none.
exports.Server = class Server {
  constructor(ask) { this.ask = ask; }

  async decide(parts, mode, most) {
    if (parts.length === 1 && !parts[0].share) return [await this.#one(parts[0], mode, most)];
    const words = parts.flatMap((part, i) => [...(i > 0 ? ['KEY', part.key] : []), ...clause(part)]);
    const last = mode === 'force' ? ['MS', 'FORCE'] : ['MS'];
    const reply = await this.ask('GO.ALL', parts.map(({ key }) => key), [...words, ...last], timeout(parts));
    let from = 6;
    const replies = parts.map(({ limiter }) => reply.slice(from, from += limiter.bounds.kind === 'slots' ? 6 : 5));
    return Object.assign(replies, { limited: reply[0], decider: reply[5] });
  }

  #one({ limiter: { bounds, timeout }, key, n }, mode, most) {
    const words = [...bounds.words];
    words.push(...[n].flat(), ...(WORDS[mode] ?? (mode === 'reserve' ? ['RESERVE', most] : [])));
    if (bounds.lockout && mode === undefined) words.push('LOCKOUT', bounds.lockout);
    words.push(...last(bounds), 'MS');
    return this.ask(`GO.${bounds.command}${mode === 'peek' ? '_RO' : ''}`, key, words, timeout);
  }

  async release(key, id) { return (await this.ask('GO.RELEASE', key, [id]))[0]; }

  async reset(key) { await this.ask('DEL', key); }
};

const last = ({ last, offset }) => (offset ? ['ALIGN', offset()] : last);
const timeout = (parts) => Math.max(...parts.map(({ limiter }) => limiter.timeout));

function clause({ limiter: { bounds }, n, share }, mode) {
  const lockout = bounds.lockout && n > 0 && mode === undefined ? ['LOCKOUT', bounds.lockout] : [];
  return [bounds.command, ...bounds.words, ...[n].flat(), ...lockout, ...last(bounds), ...(share ? ['SHARE', share] : [])];
}

exports.clause = clause;
