// A session with the server of this page: it sends traffic to limiters, and hears what came of it.

const gone = 'The connection is lost. The page tries again.';

async function post(path, body) {
  const response = await fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: body === undefined ? undefined : JSON.stringify(body) })
    .catch(() => { throw new Error(gone); });
  if (!response.ok) throw Object.assign(new Error((await response.text()).trim() || response.statusText), { ended: response.status === 404 });
  return response;
}

export class Session {
  // onstate is called with every message, onerror with a sentence, or with '' when all is well again.
  constructor({ onstate, onerror }) {
    this.onstate = onstate;
    this.onerror = onerror;
    this.queue = Promise.resolve();
    this.lanes = [];
    addEventListener('pagehide', this.leave = () => this.id && navigator.sendBeacon(`/api/sessions/${this.id}/end`));
  }

  // do runs one action after another, so that they reach the server in the order of the clicks.
  do(action) {
    this.queue = this.queue.then(() => (this.closed ? undefined : action())).then(() => this.onerror(''), (error) => {
      if (error.ended || !this.id) this.lost(error.ended ? gone : error.message);
      else this.onerror(error.message);
    });
    return this.queue;
  }

  async open() {
    if (this.id || this.closed) return;
    const { id } = await (await post('/api/sessions')).json();
    if (this.closed) return void post(`/api/sessions/${id}/end`).catch(() => {}); // the view was left meanwhile
    this.id = id;
    this.events = new EventSource(`/api/sessions/${this.id}`);
    this.events.onmessage = (event) => this.onstate(JSON.parse(event.data));
    this.events.onerror = () => this.lost();
    if (this.lanes.length) await post(`/api/sessions/${this.id}/lanes`, this.lanes);
  }

  // lost opens a new session in a while: the server may have been started again, or another tab was closed.
  lost(why = gone) {
    this.events?.close();
    this.id = undefined;
    if (this.closed) return;
    this.onerror(why);
    this.trying ??= setTimeout(() => {
      this.trying = undefined;
      this.do(() => this.open());
    }, 1500);
  }

  setLanes(lanes, traffic) {
    this.lanes = structuredClone(lanes);
    return this.do(async () => {
      if (this.id) await post(`/api/sessions/${this.id}/lanes`, this.lanes);
      else await this.open();
      if (traffic) await post(`/api/sessions/${this.id}/start`, traffic);
    });
  }

  send(verb, body) {
    return this.do(async () => {
      await this.open();
      await post(`/api/sessions/${this.id}/${verb}`, body);
    });
  }

  close() {
    this.closed = true;
    removeEventListener('pagehide', this.leave);
    this.events?.close();
    if (this.id) post(`/api/sessions/${this.id}/end`).catch(() => {});
  }
}
