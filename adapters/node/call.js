'use strict';
const { createHash } = require('node:crypto');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');

// After a call without a reply in time, nothing is sent for PAUSE ms, unless a reply comes late or the client gives up.
// Then one call tries. Each write restarts the socketTimeout of node-redis, so it must be able to end within a pause. What
// that call may have taken is given back meanwhile.
const PAUSE = 3000;

// Whether the server never got a call: by an error of ours, of a refused connection, or of node-redis and ioredis without one.
const unsent = (err) => Boolean(err?.unsent) || /ECONNREFUSED|ENOENT/.test(err?.code) || /client is (offline|closed)|enableOfflineQueue/.test(err?.message);

// Errors of several addresses have no message.
const text = (err) => (err instanceof Error ? err.message || err.code || err.name : String(err));

// Frameworks send clients the text of an error, and with the status, Nest only if expose is set. The server's own text may
// name the key: it stays in the cause.
exports.Undecided = class Undecided extends Error {
  constructor(status, cause) {
    super('no decision', { cause });
    Object.assign(this, { name: 'Undecided', status, statusCode: status, expose: false });
  }

  getResponse() { return new Response('no decision\n', { status: this.status }); } // for Hono
};

// Returns ask, which sends words once and has the integers of the reply, those in arrays too, or an Undecided, within the
// time limit: 503 if the server cannot decide now, 500 if the program or the set-up is wrong. Each is logged once. A key is
// an array if there are more: their places in the words are the caller's business.
exports.asker = function asker({ client, send = sender(client), timeout = 250, log = console.error, script = false }) {
  if (typeof send !== 'function') throw new TypeError('client is missing, or send: a function such as (...words) => reply');
  const run = script === false ? plain(send) : scripted(send, script);
  const faults = new Set(); // those that were logged: each one once, and not more than ten
  let [state, failed] = ['decides', 0];
  const note = (now, why) => { // once, and not for each request: of a cluster, other nodes may decide meanwhile
    if (now === 'unavailable') failed = Date.now();
    else if (state === now || Math.abs(Date.now() - failed) < PAUSE) return;
    if (state !== now) log(`gothrottle: ${why}`);
    state = now;
  };
  const ask = async (name, key, words = [], ms = timeout) => {
    try {
      const reply = await inTime(client ?? send, place(client, key), () => run(name, key, words.map(String)), ms, name === 'GO.RELEASE');
      note('decides', 'the server decides again');
      if (Array.isArray(reply) && reply.every(Number.isInteger)) return reply;
      const integers = [reply].flat(2).map(parseFloat); // of several limits, or of a client that makes strings of them
      if (integers.some(Number.isNaN)) throw new TypeError(`send returned ${reply}: return the reply of the client`);
      return integers;
    } catch (err) {
      const why = text(err);
      const isMoved = /^MOVED/.test(why) && client && !client.slots;
      if (isMoved || /^(ERR (?!max number|internal error|a forked)|WRONG|NOAUTH|NOPERM|CROSSSLOT)/.test(why)) { // a fault of the program
        const hint = isMoved ? ': pass a cluster client' : /unknown command/.test(why) ? ': load the module gothrottle, or pass script: true' : '';
        const what = isMoved ? 'MOVED' : why;
        if (faults.size < 10 && !faults.has(what)) {
          faults.add(what);
          log(`gothrottle: ${why}${hint}`);
        }
        throw new exports.Undecided(500, err);
      }
      note('unavailable', `no decision: ${why}`);
      throw Object.assign(new exports.Undecided(503, err), { unsent: unsent(err) });
    }
  };
  return Object.assign(ask, { send, unavailable: (err) => note('unavailable', `no decision: ${text(err)}`) });
};

const plain = (send) => (name, key, words) => send(name, typeof key === 'string' ? key : key[0], ...words);

// The package has the script as a module, which bundlers follow. The repository has it once.
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
  return async (name, key, words) => {
    if (!name.startsWith('GO.')) return send(name, key, ...words);
    const keys = [key].flat();
    const run = async (command, which) => send(command, which, String(keys.length), ...keys, name, ...words);
    const ifUnknown = (then) => (err) => {
      if (!/^NOSCRIPT/.test(text(err))) throw err;
      return then();
    };
    return run('EVALSHA', sha).catch(ifUnknown(() => {
      if (loading) return loading.then(() => run('EVALSHA', sha)).catch(ifUnknown(() => run('EVAL', script)));
      const call = run('EVAL', script);
      loading = call.catch(() => {}).finally(() => { loading = undefined; });
      return call;
    }));
  };
}

const owners = new WeakMap(); // client or send -> Map of servers -> when their pause ends, in ms. Limiters share connections

// Returns a function that sends words. It refuses clients that would send a call twice, keep calls while there is no
// connection, or wait without end on a connection that went silent. The options of node-redis 4's clusters can't be seen.
function sender(client) {
  if (!client) return undefined;
  const isIoredis = typeof client.call === 'function';
  const isCluster = client.isCluster || !isIoredis && 'masters' in client;
  const o = isIoredis ? { ...client.options, ...client.options.redisOptions } : (isCluster ? client._options?.defaults : client.options) ?? {};
  const settings = isIoredis ? {
    [isCluster ? 'retryDelayOnFailover: 0' : 'maxRetriesPerRequest: 0']: // else a reconnect sends calls again
      (isCluster ? o.retryDelayOnFailover : o.maxRetriesPerRequest) === 0,
    'enableOfflineQueue: false': client.options.enableOfflineQueue === false,
    'socketTimeout: 2000': o.socketTimeout < PAUSE,
  } : {
    'disableOfflineQueue: true': o.disableOfflineQueue,
    'pingInterval: 1000': o.pingInterval < o.socket?.socketTimeout,
    'socket.socketTimeout: 2000': o.socket?.socketTimeout < PAUSE,
    'socket.reconnectStrategy': o.socket?.reconnectStrategy,
  };
  const missing = Object.keys(settings).filter((name) => !settings[name]);
  if (missing.length > 0 && !(isCluster && !isIoredis && !client._options)) {
    throw new TypeError(`client needs ${missing.join(', ')}. See README.md`);
  }
  if (isIoredis) return byIoredis(client, isCluster);
  return isCluster ? (...words) => client.sendCommand(firstKey(words), false, words) : (...words) => client.sendCommand(words);
}

const firstKey = (words) => (/^EVAL/.test(words[0]) ? words[3] : words[1]);

// ioredis doesn't know where the key of a new command is: in a cluster it would ask any node. Only of the commands it knows
// would it prefix the keys.
function byIoredis(client, isCluster) {
  let slot; // of the call that is being made
  const sendCommand = (command) => {
    command.slot = slot;
    return client.sendCommand(command);
  };
  const by = Object.create(client, { options: { value: { ...client.options, keyPrefix: '' } }, ...isCluster && { sendCommand: { value: sendCommand } } });
  return (...words) => {
    if (isCluster) slot = slotOf(firstKey(words));
    else together(client.stream);
    return by.call(...words);
  };
}

// Makes one write of the calls until the end of this tick: ioredis makes one of each.
function together(stream) {
  if (!stream?.cork || stream.writableCorked > 0) return;
  stream.cork();
  process.nextTick(() => stream.uncork());
}

function slotOf(key) {
  let crc = 0; // CRC-16/XMODEM
  for (const byte of Buffer.from(/^[^{]*\{([^}]+)\}/.exec(key)?.[1] ?? String(key))) {
    crc ^= byte << 8;
    for (let i = 0; i < 8; i++) crc = (crc << 1) ^ (crc & 0x8000 ? 0x11021 : 0);
  }
  return crc % 16384;
}

// Returns the server of a key, so that one that is silent stops no call to others. Where it isn't known, 64 slots stand for
// it: mostly one node has them.
function place(client, key) {
  if (client && !client.slots) return 0;
  const slot = slotOf([key].flat()[0]);
  const at = client?.slots[slot];
  return at?.master?.address ?? at?.[0] ?? slot >> 6;
}

function inTime(owner, part, send, ms, always) {
  if (!owners.has(owner)) owners.set(owner, new Map());
  const pauses = owners.get(owner);
  const rest = pauses.get(part) - Date.now();
  if (rest > 0 && rest <= PAUSE && !always) return Promise.reject(Object.assign(new Error('no call was sent: the last one has no reply'), { unsent: true }));
  const pause = () => pauses.set(part, Date.now() + PAUSE);
  if (pauses.has(part)) pause(); // for all but this call
  return new Promise((resolve, reject) => {
    let over = false;
    const timer = setTimeout(() => setImmediate(() => { // a reply may have come while this process was busy
      if (over) return;
      pause();
      reject(new Error(`no reply within ${ms} ms`));
    }), ms);
    const end = (settle) => (value) => {
      over = true;
      clearTimeout(timer);
      pauses.delete(part);
      settle(value);
    };
    try {
      Promise.resolve(send()).then(end(resolve), end(reject));
    } catch (err) {
      end(reject)(err);
    }
  });
}
