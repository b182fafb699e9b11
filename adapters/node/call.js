'use strict';

const text = (err) => (err instanceof Error ? err.message : String(err));

// Returns a function that sends words once and has the integers of the reply, or an error, within the time limit. If the
// server cannot decide now, the function logs that once, and returns undefined if failOpen is set.
exports.caller = function caller({ send, prefix, timeout = 250, failOpen = false, log = console.error } = {}) {
  if (typeof send !== 'function') {
    throw new TypeError('send is missing: pass a function such as (...words) => client.sendCommand(words)');
  }
  if (typeof prefix !== 'string' || prefix === '') {
    throw new TypeError('prefix is missing: pass a name such as "login". Limiters with one prefix share their counters');
  }
  let state = 'decides';
  const note = (now, why) => { // once, and not for each request
    if (state !== now) log(`gothrottle: limiter ${prefix}: ${why}`);
    state = now;
  };
  return async (...words) => {
    try {
      const reply = await inTime(() => send(...words.map(String)), timeout);
      const integers = [reply].flat().map(parseFloat); // some clients make strings of them
      if (integers.some(Number.isNaN)) throw new TypeError(`send returned ${reply}: return the reply of the client`);
      note('decides', 'the server decides again');
      return integers;
    } catch (err) {
      if (/unknown command/.test(text(err))) note('unknown', `${text(err)}: load the module gothrottle`);
      if (/^(ERR (?!max number)|WRONG|NOAUTH|NOPERM)/.test(text(err))) throw err; // a fault of the program
      note('away', `no decision: ${text(err)}`);
      if (failOpen) return undefined;
      // Express, Fastify and Nest answer with the status, Nest only if expose is set. The text may reach clients.
      throw Object.assign(new Error('no decision', { cause: err }), { status: 503, statusCode: 503, expose: false });
    }
  };
};

function inTime(send, ms) {
  let timer;
  const limit = new Promise((resolve, reject) => {
    timer = setTimeout(reject, ms, new Error(`no reply within ${ms} ms`));
  });
  return Promise.race([new Promise((resolve) => { resolve(send()); }), limit]).finally(() => clearTimeout(timer));
}
