// Reads logs: the common and the combined format of access logs, JSON of Caddy and Traefik, and lines of a time and, after a
// comma, a semicolon or a tab, who called.
export const mostLines = 5e6;
export const pause = () => new Promise((done) => setTimeout(done)); // the browser does what waits
const access = /^[^[]+\[(\d\d)\/(\w{3})\/(\d{4}):(\d\d:\d\d:\d\d [+-]\d{4})/; // 10.0.0.1 - - [10/Oct/2027:13:55:36 -0700]

// readLog reads a blob until stop() is true.
export async function readLog(blob, stop) {
  const log = new LogReader();
  const text = blob.stream().pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await text.read(); !part.done && !log.full && !stop(); part = await pause().then(() => text.read())) log.add(part.value);
  log.add('\n');
  return log;
}

class LogReader {
  users = new Map(); // the times of their calls, by name
  total = 0; // calls
  first = Infinity;
  last = 0;
  skipped = 0;
  rest = '';

  // add takes a part of the text. A line counts when its end has come.
  add(text) {
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop().slice(0, 100000);
    for (const line of lines) this.line(line);
  }

  get full() { return this.total >= mostLines; }

  line(line) {
    const [, day, month, year, time] = access.exec(line) ?? [];
    if (line[0] === '{') this.json(line);
    else if (day) this.call(Date.parse(`${day} ${month} ${year} ${time}`), line.slice(0, line.indexOf(' ')));
    else if (line.trim()) this.call(...line.split(/[,;\t]/, 2).map(unquoted));
  }

  // json reads an entry of Caddy (ts, request.client_ip) or Traefik (StartUTC, ClientHost). Caddy logs a failed request twice.
  json(line) {
    let entry = {};
    try { entry = JSON.parse(line); } catch { /* a line cut off has no user */ }
    const user = entry.request?.client_ip ?? entry.request?.remote_ip ?? entry.ClientHost;
    if (user && !String(entry.logger).startsWith('http.log.error')) this.call(String(entry.ts ?? entry.StartUTC ?? entry.time), user);
    else this.skipped++;
  }

  call(time, who = '') {
    const at = typeof time === 'string' ? timeOf(time) : time;
    if (!(at >= 0 && at < 4102444800000) || this.full) { this.skipped++; return; }
    if (!this.users.has(who)) this.users.set(who, []);
    this.users.get(who).push(at);
    this.total++;
    this.first = Math.min(this.first, at);
    this.last = Math.max(this.last, at);
  }
}

const unquoted = (text) => text.trim().replace(/^"(.*)"$/, '$1');

// timeOf returns ms since the Unix epoch of a date, or of a number of s, ms, us or ns since then.
function timeOf(text) {
  if (/^\d+(\.\d+)?$/.test(text)) {
    const n = Number(text);
    return n < 1e11 ? n * 1000 : n < 1e14 ? n : n < 1e17 ? n / 1000 : n / 1e6;
  }
  return /^\d{4}[-/]\d\d[-/]\d\d/.test(text) ? Date.parse(text.replaceAll('/', '-').replace(' ', 'T').replace(/ ?UTC$/, 'Z')) : NaN;
}

// example is a made-up day: 40 users, of whom some come in bursts and one is a program that never rests.
export function example() {
  let seed = 7;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const line = (ms, who) => `${new Date(Date.UTC(2027, 0, 15, 9) + ms).toISOString()},${who}`;
  const lines = Array.from({ length: 1500 }, (_, i) => line(600000 + i * 400, 'robot'));
  for (let user = 0; user < 40; user++) {
    for (let at = random() * 60000; at < 1800000; at += -Math.log(random()) * 60000) {
      const burst = 1 + Math.floor(random() ** 3 * 12);
      for (let i = 0; i < burst; i++) lines.push(line(at + i * 120, `user-${user}`));
    }
  }
  return lines.join('\n');
}
