// What the page shows of one limiter: its chart, its counts, the last reply in words, the lines to copy and GO.INFO.
import { h, setText, copyable, span } from './dom.js';
import { Chart } from './chart.js';

export class Lane {
  constructor({ name, size, controls }) {
    this.size = size;
    this.name = name;
    this.chart = new Chart(name, size);
    this.title = h('p', { class: 'lane-title' });
    this.admitted = h('b', { class: 'count-admitted' }, '0');
    this.denied = h('b', { class: 'count-denied' }, '0');
    this.most = h('span', { class: 'most' });
    this.legend = h('p', { class: 'quiet-text' });
    this.error = h('p', { class: 'error', role: 'alert' });
    this.cli = copyable('redis-cli');
    this.go = copyable('Go');
    this.words = h('tbody');
    this.info = h('div', { class: 'info' });
    this.heading = h('h2', {}, name);
    this.element = h('article', { class: 'card lane', 'aria-label': name },
      h('div', { class: 'lane-head' }, h('div', {}, this.heading, this.title), this.counts()),
      this.error, this.chart.element, this.legend, h('div', { class: 'folds' }, controls, this.facts()));
  }

  counts() {
    return h('p', { class: 'counts' }, h('span', { class: 'good' }, this.admitted, ' admitted'), h('span', { class: 'bad' }, this.denied, ' denied'), this.most);
  }

  facts() {
    const reply = h('div', { class: 'fact' }, h('h3', {}, 'The last reply'),
      h('table', { class: 'words' }, h('caption', { class: 'hidden' }, 'The integers of the last reply'),
        h('thead', { class: 'hidden' }, h('tr', {}, ...['Name', 'Value', 'Meaning'].map((text) => h('th', { scope: 'col' }, text)))), this.words));
    const lines = h('div', { class: 'fact' }, h('h3', {}, 'The same call'), this.cli.element, this.go.element);
    const info = h('div', { class: 'fact' }, h('h3', {}, 'GO.INFO of the key'), this.info);
    return h('details', { class: 'facts' }, h('summary', {}, 'Reply, commands and GO.INFO'), h('div', { class: 'facts-grid' }, reply, lines, info));
  }

  configure(spec, seconds) {
    this.spec = spec;
    if (this.size === 'full') setText(this.heading, `${this.name}: ${commands[spec.kind]}`);
    this.chart.configure({ spec, seconds });
  }

  // show takes what the server told of this limiter.
  show(state, title) {
    setText(this.title, title);
    setText(this.legend, legend(this.spec, this.chart.shows));
    setText(this.admitted, state.admitted);
    setText(this.denied, state.denied);
    setText(this.error, state.error ?? '');
    // A burst and the rate that follows it are what a throttle promises. Only where limiters are compared it is marked.
    const marked = this.size === 'compact' || this.spec.kind !== 'throttle';
    if (marked) this.chart.mark(state.peak);
    setText(this.most, state.peak.units ? `most in any ${span(this.spec.period)}: ${state.peak.units}` : '');
    this.most.classList.toggle('over', marked && state.peak.units > this.spec.limit);
    this.cli.set(state.cli);
    this.go.set(state.go);
    this.showWords(state.words ?? []);
    this.state = state;
  }

  showWords(words) {
    const text = JSON.stringify(words);
    if (text === this.shown) return;
    this.shown = text;
    this.words.replaceChildren(...words.map((word, i) => h('tr', {}, h('th', { scope: 'row' }, `${i + 1}) ${word.name}`), h('td', { class: 'value' }, String(word.value)), h('td', {}, word.says))));
    if (!words.length) this.words.replaceChildren(h('tr', {}, h('td', {}, 'No call yet.')));
  }

  showInfo(infos) {
    const text = JSON.stringify(infos);
    if (text === this.shownInfo) return;
    this.shownInfo = text;
    this.info.replaceChildren(...(infos ?? []).map(infoList));
    if (!infos?.length) this.info.replaceChildren(h('p', { class: 'quiet-text' }, 'There is no key: nothing is in use.'));
  }

  // sentence sums up for screen readers.
  sentence() {
    return `${this.state?.admitted ?? 0} admitted, ${this.state?.denied ?? 0} denied`;
  }
}

const commands = { throttle: 'GO.THROTTLE', window: 'GO.WINDOW', quota: 'GO.QUOTA', all: 'GO.ALL', policy: 'GO.POLICY' };

// legend explains what only some limiters show.
function legend(spec, shows) {
  const lines = {
    upto: '○ and □: only a part of the quantity was granted.',
    reserve: 'An arrow ends at the slot that the call got.',
    lockout: 'Hatched: locked out after a denial.',
  };
  const several = spec.kind === 'policy' ? shows.several && 'Curves, one for each limiter of the policy: each as a share of its limit.' : spec.clauses?.length > 1 && `Curves, each as a share of its limit: ${spec.clauses.map((c, i) => `${commands[c.kind].slice(3)} ${['──', '╌╌', '┈┈'][i]}`).join(', ')}.`;
  const shadow = shows.shadow && '○ stands for a call that a policy in SHADOW would have denied.';
  const second = shows.second && !several && 'Dashed: what is left for the second client (■).';
  return [lines[spec.mode], several, second, shadow].filter(Boolean).join(' ');
}

// infoList shows what GO.INFO tells of a key.
export function infoList(info) {
  const rows = info.fields?.map((field) => h('tr', {}, h('th', { scope: 'row' }, field.name), h('td', {}, field.value))) ?? [];
  return h('div', {}, h('p', { class: 'key' }, h('code', {}, info.key)), info.error ? h('p', { class: 'error' }, info.error)
    : h('table', { class: 'words' }, h('caption', { class: 'hidden' }, `GO.INFO ${info.key}`), h('tbody', {}, ...rows)));
}
