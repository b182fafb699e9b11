// The view Watch: the counters of a server. It only reads.
import { h, svg, setText, field } from './dom.js';
import { infoList } from './lane.js';

const kept = 60; // samples of a small chart

export function watchView(about) {
  const body = h('tbody');
  const top = h('ol', { class: 'top-keys' });
  const error = h('p', { class: 'error', role: 'alert' });
  const totals = { calls: tile('calls per second'), denied: tile('denied per second'), rate: tile('deny rate now'), errors: tile('errors since the module was loaded') };
  const rows = new Map();
  let before;
  let events;
  const listen = () => {
    events?.close();
    if (document.hidden) return; // a page that nobody sees asks nothing
    events = new EventSource('/api/watch');
    events.onmessage = take;
    events.onerror = () => { if (!error.textContent) setText(error, 'The connection is lost. The page tries again.'); };
  };
  const take = (event) => {
    const seen = JSON.parse(event.data);
    setText(error, seen.error ?? '');
    if (seen.error || seen.at === before?.at) return; // pages share a look, and may be told it twice
    show(seen, before, { body, rows, totals });
    showTop(top, seen);
    before = seen;
  };
  document.addEventListener('visibilitychange', listen);
  listen();
  const key = keyForm();
  return {
    element: h('div', { class: 'view' },
      h('div', { class: 'lead' }, h('h1', {}, `Watch ${about.addr}`),
        h('p', {}, h('b', {}, 'Reads only.'), ' Once a second the page’s server sends INFO and GO.TOP; every two seconds GO.INFO of the key that you type. None of them changes a limiter.')),
      error,
      h('section', { class: 'tiles', 'aria-label': 'All commands' }, ...Object.values(totals).map((t) => t.element)),
      h('section', { class: 'card', 'aria-labelledby': 'commands' }, h('h2', { id: 'commands' }, 'Commands'),
        h('p', { class: 'quiet-text' }, 'Admitted, denied, deny rate and errors count since the module was loaded.'),
        h('div', { class: 'table-box', tabindex: 0, role: 'region', 'aria-label': 'Counts of each command' },
          h('table', { class: 'watch' }, h('caption', { class: 'hidden' }, 'Calls of each command'),
            h('thead', {}, h('tr', {}, ...['Command', 'Per second', 'Last minute', 'Admitted', 'Denied', 'Deny rate', 'Errors'].map((text) => h('th', { scope: 'col' }, text)))), body))),
      h('div', { class: 'two' },
        h('section', { class: 'card', 'aria-labelledby': 'top' }, h('h2', { id: 'top' }, 'Keys that are denied most'),
          h('p', { class: 'quiet-text' }, 'A key follows the number of its database: 0:login:bob is login:bob in database 0.'), top),
        h('section', { class: 'card', 'aria-labelledby': 'key' }, h('h2', { id: 'key' }, 'What is at a key'), key.element))),
    close: () => { document.removeEventListener('visibilitychange', listen); events?.close(); key.close(); },
  };
}

function tile(name) {
  const value = h('b', {}, '–');
  return { element: h('p', { class: 'card tile' }, value, h('span', {}, name)), set: (text) => setText(value, text) };
}

const percent = (part, all) => (all ? `${((100 * part) / all).toFixed(part && part / all < 0.1 ? 1 : 0)} %` : '–');

function show(seen, before, { body, rows, totals }) {
  const sum = { calls: 0, denied: 0, errors: 0 };
  const seconds = before ? Math.max((seen.at - before.at) / 1000, 0.001) : 1;
  for (const now of seen.commands) {
    const then = before?.commands.find((c) => c.name === now.name) ?? now;
    const calls = Math.max(now.admitted + now.limited - then.admitted - then.limited, 0);
    const denied = Math.max(now.limited - then.limited, 0);
    sum.calls += calls / seconds;
    sum.denied += denied / seconds;
    sum.errors += now.errors;
    if (now.admitted + now.limited + now.errors + now.shadowed === 0) continue;
    if (!rows.has(now.name)) addRow(rows, body, now.name);
    rows.get(now.name).set(now, calls / seconds, denied / seconds);
  }
  if (!rows.size) body.replaceChildren(h('tr', {}, h('td', { colspan: 7 }, 'No command has decided anything since the module was loaded.')));
  totals.calls.set(sum.calls.toFixed(0));
  totals.denied.set(sum.denied.toFixed(0));
  totals.rate.set(percent(sum.denied, sum.calls));
  totals.errors.set(sum.errors);
}

function addRow(rows, body, name) {
  if (!rows.size) body.replaceChildren();
  const cells = ['rate', 'spark', 'admitted', 'limited', 'share', 'errors'].map((c) => h('td', { class: c }));
  const [rate, chart, admitted, limited, share, errors] = cells;
  const samples = [];
  body.append(h('tr', {}, h('th', { scope: 'row' }, h('code', {}, name)), ...cells));
  rows.set(name, { set: (now, calls, denied) => {
    samples.push([calls, denied]);
    if (samples.length > kept) samples.shift();
    setText(rate, calls.toFixed(calls < 10 && calls ? 1 : 0));
    setText(admitted, now.admitted.toLocaleString('en'));
    setText(limited, now.limited.toLocaleString('en') + (now.shadowed ? ` (+${now.shadowed} in SHADOW)` : ''));
    setText(share, percent(now.limited, now.admitted + now.limited));
    setText(errors, now.errors);
    errors.classList.toggle('bad', now.errors > 0);
    chart.replaceChildren(spark(samples, name));
  } });
}

// spark draws the last minute: all calls, and the denied ones darker.
function spark(samples, name) {
  const most = Math.max(...samples.map((s) => s[0]), 1);
  const bars = samples.flatMap(([calls, denied], i) => {
    const x = 120 - (samples.length - i) * 2;
    const bar = (value, of) => svg('rect', { class: of, x, width: 1.6, y: 24 - (value / most) * 24, height: (value / most) * 24 });
    return [bar(calls, 'spark-all'), bar(denied, 'spark-denied')];
  });
  return svg('svg', { viewBox: '0 0 120 24', width: 120, height: 24, role: 'img', 'aria-label': `${name} in the last minute: at most ${most.toFixed(0)} calls per second` }, ...bars);
}

function showTop(list, seen) {
  const text = JSON.stringify([seen.topKeys, seen.top]);
  if (text === list.dataset.shown) return;
  list.dataset.shown = text;
  const most = Math.max(...(seen.top ?? []).map((row) => row.denied), 1);
  list.replaceChildren(...(seen.top ?? []).map((row) => h('li', {}, h('code', {}, row.key), svg('svg', { 'aria-hidden': 'true', viewBox: '0 0 100 8', preserveAspectRatio: 'none' }, svg('rect', { class: 'spark-denied', width: (100 * row.denied) / most, height: 8 })),
    h('span', {}, h('span', { class: 'hidden' }, 'denied: '), `${row.denied.toLocaleString('en')}${row.error ? ` ± ${row.error}` : ''}`))));
  if (!seen.topKeys) list.replaceChildren(h('li', { class: 'quiet-text' }, 'The server counts no keys: gothrottle.top-keys is 0.'));
  else if (!seen.top?.length) list.replaceChildren(h('li', { class: 'quiet-text' }, 'No key was denied yet.'));
}

// keyForm asks GO.INFO of a key, and again every two seconds. Only the first answer is read out.
function keyForm() {
  const input = h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', required: true });
  const result = h('div', { class: 'info' });
  const said = h('p', { class: 'hidden', role: 'status' });
  let timer;
  let asked = 0; // an answer to an earlier question is not shown
  let shown;
  const ask = async (key, aloud) => {
    clearTimeout(timer);
    const question = ++asked;
    if (aloud || !document.hidden) {
      const info = await fetch(`/api/key?key=${encodeURIComponent(key)}`).then((response) => response.json())
        .catch(() => ({ key, error: 'The connection is lost. The page tries again.' }));
      if (question !== asked) return;
      show(info);
      if (aloud) said.textContent = info.error || (info.fields ? `${key}: ${info.fields.map((field) => `${field.name} ${field.value}`).join(', ')}` : missing);
    }
    timer = setTimeout(ask, 2000, key);
  };
  const show = (info) => {
    const text = JSON.stringify(info);
    if (text === shown) return;
    shown = text;
    result.replaceChildren(info.fields || info.error ? infoList(info) : h('p', {}, missing));
  };
  const form = h('form', { class: 'key-form', onsubmit: (event) => { event.preventDefault(); ask(input.value, true); } }, field('Key', input), h('button', {}, 'Ask GO.INFO'));
  return { element: h('div', {}, form, said, result), close: () => { asked++; clearTimeout(timer); } };
}

const missing = 'There is no such key: nothing is in use.';
