'use strict';
const { createHash } = require('node:crypto');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');

const text = (err) => (err instanceof Error ? err.message : String(err));

// Frameworks send clients the text of an error, and with the status, Nest only if expose is set. The server's own text may
// name the key: it stays in the cause.
const undecided = (status, cause) => {
  return Object.assign(new Error('no decision', { cause }), { status, statusCode: status, expose: false });
};

// Returns a function that sends words once and has the integers of the reply, or an error, within the time limit. If the
// server cannot decide now, the function logs that once, and returns undefined if failOpen is set.
exports.caller = function caller(options = {}) {
  const { client, send = sender(client), prefix, timeout = 250, failOpen = false, log = console.error, script = false } = options;
  if (typeof send !== 'function') throw new TypeError('client is missing, or send: a function such as (...words) => reply');
  if (typeof prefix !== 'string' || prefix === '') {
    throw new TypeError('prefix is missing: pass a name such as "login". Limiters with one prefix share their counters');
  }
  const ask = script === false ? send : scripted(send, script);
  const faults = new Set(); // those that were logged: each one once, and not more than ten
  let state = 'decides';
  const note = (now, why) => { // once, and not for each request
    if (state !== now) log(`gothrottle: limiter ${prefix}: ${why}`);
    state = now;
  };
  return async (...words) => {
    try {
      const reply = await inTime(client ?? send, client ? 0 : slots(words[1]), () => ask(...words.map(String)), timeout);
      const integers = [reply].flat().map(parseFloat); // some clients make strings of them
      if (integers.some(Number.isNaN)) throw new TypeError(`send returned ${reply}: return the reply of the client`);
      note('decides', 'the server decides again');
      return integers;
    } catch (err) {
      const why = text(err);
      if (/^(ERR (?!max number)|WRONG|NOAUTH|NOPERM)/.test(why)) { // a fault of the program
        const hint = /unknown command/.test(why) ? ': load the module gothrottle, or pass script: true' : '';
        if (faults.size < 10 && !faults.has(why)) {
          faults.add(why);
          log(`gothrottle: limiter ${prefix}: ${why}${hint}`);
        }
        throw undecided(500, err);
      }
      note('away', `no decision: ${why}`);
      if (failOpen) return undefined;
      throw undecided(503, err);
    }
  };
};

// npm pack puts the script into the package as a module, which bundlers follow. The repository has it once.
function packed() {
  try {
    return require('./script.js');
  } catch {
    return readFileSync(join(__dirname, '../../script/gothrottle.lua'), 'utf8');
  }
}

// Returns a function that calls the script, and sends its text if the server doesn't know it: one call at a time does, and
// the others wait for it. In a cluster that may have been another node: they then send the text, too.
function scripted(send, option) {
  if (option !== true && !(option.length > 1000)) throw new TypeError('script is true, or the text of gothrottle.lua');
  const script = option === true ? packed() : option;
  const sha = createHash('sha1').update(script).digest('hex');
  let loading;
  const unknown = (err) => {
    if (!/^NOSCRIPT/.test(text(err))) throw err;
  };
  return async (name, key, ...words) => {
    const run = async (command, which) => send(command, which, '1', key, name, ...words);
    if (!name.startsWith('GO.')) return send(name, key, ...words);
    try {
      return await run('EVALSHA', sha);
    } catch (err) {
      unknown(err);
    }
    if (loading) {
      return loading.then(() => run('EVALSHA', sha)).catch((err) => {
        unknown(err);
        return run('EVAL', script);
      });
    }
    const call = run('EVAL', script);
    loading = call.catch(() => {}).finally(() => { loading = undefined; });
    return call;
  };
}

// Returns a function that sends words. It refuses clients that would send a call twice, keep calls while there is no
// connection, or wait without end on a connection that went silent.
function sender(client) {
  if (!client) return undefined;
  const { options: o = {} } = client;
  const isIoredis = typeof client.call === 'function';
  const settings = isIoredis ? {
    'maxRetriesPerRequest: 0': o.maxRetriesPerRequest === 0, // else a reconnect sends calls again
    'enableOfflineQueue: false': o.enableOfflineQueue === false,
    'socketTimeout: 2000': o.socketTimeout < PAUSE,
  } : {
    'disableOfflineQueue: true': o.disableOfflineQueue,
    'pingInterval: 1000': o.pingInterval < o.socket?.socketTimeout,
    'socket.socketTimeout: 2000': o.socket?.socketTimeout < PAUSE,
    'socket.reconnectStrategy': o.socket?.reconnectStrategy,
  };
  const missing = Object.keys(settings).filter((name) => !settings[name]);
  if (missing.length > 0) throw new TypeError(`client needs ${missing.join(', ')}; a cluster needs send. See README.md`);
  return isIoredis ? (...words) => client.call(...words) : (...words) => client.sendCommand(words);
}

// Returns which 64 slots of a cluster have a key: mostly one node's, so that a node that is silent stops few calls to others.
function slots(key) {
  let crc = 0; // CRC-16/XMODEM
  for (const byte of Buffer.from(/^[^{]*\{([^}]+)\}/.exec(key)?.[1] ?? String(key))) {
    crc ^= byte << 8;
    for (let i = 0; i < 8; i++) crc = (crc << 1) ^ (crc & 0x8000 ? 0x11021 : 0);
  }
  return (crc % 16384) >> 6;
}

// After a call without a reply in time, nothing is sent for PAUSE ms, unless a reply comes late or the client gives up.
// Then one call tries. Each write restarts the socketTimeout of node-redis, so it must be able to end within a pause.
const PAUSE = 3000;
const owners = new WeakMap(); // client or send -> Map of slots -> when their pause ends, in ms. Limiters share connections

function inTime(owner, part, send, ms) {
  if (!owners.has(owner)) owners.set(owner, new Map());
  const pauses = owners.get(owner);
  if (Date.now() < pauses.get(part)) return Promise.reject(new Error('no call was sent: the last one has no reply'));
  const pause = () => pauses.set(part, Date.now() + PAUSE);
  if (pauses.has(part)) pause(); // for all but this call
  let timer;
  const limit = new Promise((resolve, reject) => {
    timer = setTimeout(() => { pause(); reject(new Error(`no reply within ${ms} ms`)); }, ms);
  });
  const call = new Promise((resolve) => { resolve(send()); }).finally(() => pauses.delete(part));
  return Promise.race([call, limit]).finally(() => clearTimeout(timer));
}
