'use strict';
const { Undecided } = require('./call.js');

// Makes one call of those that come while a call for the same key is under way: there are never two. Callers get units first
// come, first served, and wait for at most ms; those that gave up take no place.
exports.Merge = class Merge {
  #busy = new Map(); // key -> the callers that wait for the next call: { at, resolve, reject } in the order in which they came

  constructor(ms, ask) { Object.assign(this, { ms, ask }); }

  // Returns the reply to one caller of a part, as ask(part) has it.
  take(part) {
    const waiting = this.#busy.get(part.key);
    if (waiting) return new Promise((resolve, reject) => { this.#join(waiting, { at: Date.now(), resolve, reject }); });
    const reply = this.ask(part);
    this.#busy.set(part.key, { callers: [], gone: 0 });
    const next = () => this.#next(part);
    reply.then(next, next);
    return reply;
  }

  #join(waiting, caller) {
    waiting.callers.push(caller);
    waiting.timer ??= setTimeout(() => this.#late(waiting), this.ms);
  }

  #late(waiting) { // callers that came within a sixteenth of the limit share a timer
    const { callers } = waiting;
    for (const now = Date.now() + this.ms / 16; callers[waiting.gone]?.at + this.ms <= now; waiting.gone++) {
      callers[waiting.gone].reject(new Undecided(503, new Error(`no reply within ${this.ms} ms`)));
    }
    const next = callers[waiting.gone];
    waiting.timer = next && setTimeout(() => this.#late(waiting), next.at + this.ms - Date.now());
  }

  #next(part) {
    const waiting = this.#busy.get(part.key);
    const n = waiting.callers.length - waiting.gone;
    if (n > 0) {
      this.#busy.set(part.key, { callers: [], gone: 0 });
      this.#give({ ...part, n }, waiting);
    } else {
      clearTimeout(waiting.timer);
      this.#busy.delete(part.key);
    }
  }

  async #give(part, waiting) {
    try {
      const reply = await this.ask(part, 'upTo');
      let left = reply[5];
      for (const { resolve } of waiting.callers.slice(waiting.gone)) resolve([left-- > 0 ? 0 : 1, ...reply.slice(1, 5)]);
    } catch (err) {
      for (const { reject } of waiting.callers.slice(waiting.gone)) reject(err);
    } finally {
      clearTimeout(waiting.timer);
      setImmediate(() => this.#next(part)); // so that callers who have their answers join the next call
    }
  }
};
