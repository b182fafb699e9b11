// The form of one limiter.
import { h, field, select, number, checkbox } from './dom.js';

const kinds = [
  ['throttle', 'Rate with a burst (GO.THROTTLE)'], ['window', 'Sliding window (GO.WINDOW)'], ['quota', 'Fixed window (GO.QUOTA)'],
  ['all', 'Several at once (GO.ALL)'], ['policy', 'A policy of the server (GO.POLICY)'],
];
const options = {
  throttle: [['', 'None'], ['upto', 'UPTO: take what is left'], ['force', 'FORCE: charge past the limit'], ['reserve', 'RESERVE: a slot in the future'], ['lockout', 'LOCKOUT: a pause after a denial']],
  window: [['', 'None'], ['upto', 'UPTO: take what is left'], ['force', 'FORCE: charge past the limit']],
  quota: [['', 'None'], ['upto', 'UPTO: take what is left'], ['force', 'FORCE: charge past the limit']],
  all: [['', 'None'], ['force', 'FORCE: charge all, past their limits']],
};

// fresh is a limiter of this kind.
export function fresh(kind, policies = []) {
  switch (kind) {
    case 'throttle': return { kind, limit: 10, count: 10, period: 5000 };
    case 'all': return { kind, clauses: [{ kind: 'throttle', limit: 5, count: 5, period: 1000 }, { kind: 'window', limit: 20, period: 10000 }] };
    case 'policy': return { kind, policy: policies[0]?.name };
  }
  return { kind, limit: 10, period: 5000 };
}

// known returns a limiter of a link with what the page has of it. Numbers are taken as they are: the form tells which are
// invalid.
export function known(spec, policies) {
  const has = (kind) => kinds.some(([name]) => name === kind) && (kind !== 'policy' || policies.length);
  const usual = fresh(has(spec.kind) ? spec.kind : 'throttle', policies);
  const { kind } = usual;
  const own = { kind };
  for (const name of ['limit', 'count']) if (name in usual) own[name] = spec[name] ?? usual[name];
  if (usual.period) own.period = Math.round(spec.period ?? usual.period);
  if (kind === 'policy') own.policy = policies.some((p) => p.name === spec.policy) ? spec.policy : usual.policy;
  if (spec.quantity !== undefined && kind !== 'all') own.quantity = spec.quantity;
  if (spec.mode && options[kind]?.some(([name]) => name === spec.mode)) own.mode = spec.mode;
  if (timed(own)) own.time = Math.round(spec.time ?? 3000);
  if (kind === 'window' && spec.exact === true) own.exact = true;
  if (kind === 'quota' && spec.align === true) own.align = true;
  if (kind === 'all') own.clauses = Array.isArray(spec.clauses) ? spec.clauses.slice(0, 3).map(part) : usual.clauses;
  return own;
}

// part returns a limiter of several. It is neither several itself nor a policy, and has no option.
const part = (spec) => known({ ...spec, kind: spec.kind === 'all' ? 'throttle' : spec.kind, mode: undefined }, []);

const timed = (spec) => spec.mode === 'reserve' || spec.mode === 'lockout';

// editor returns the form. The limiter is changed in place, and onchange is told; again is told if the form's shape changed.
export function editor(spec, policies, onchange) {
  const form = h('div', { class: 'editor' });
  const draw = (focus) => {
    form.replaceChildren(...fields(spec, policies, onchange, draw));
    if (focus) form.querySelector(`[data-name="${focus}"]`)?.focus();
  };
  draw();
  return form;
}

function fields(spec, policies, onchange, draw) {
  const usable = kinds.filter(([kind]) => kind !== 'policy' || policies.length);
  const kind = select(usable, spec.kind, (value) => {
    replace(spec, fresh(value, policies));
    draw('kind');
    onchange();
  });
  kind.dataset.name = 'kind';
  const list = [field('Limiter', kind)];
  if (spec.kind === 'policy') list.push(...policyFields(spec, policies, onchange, draw));
  else if (spec.kind === 'all') list.push(...clauseFields(spec, onchange, draw));
  else list.push(...numbers(spec, onchange), quantity(spec, onchange));
  if (options[spec.kind]) list.push(...optionFields(spec, onchange, draw));
  if (spec.kind === 'window') list.push(checkbox('EXACT: an entry for each call, whatever the limit', spec.exact, (on) => { spec.exact = on; onchange(); }));
  if (spec.kind === 'quota') list.push(checkbox('ALIGN: windows follow the clock', spec.align, (on) => { spec.align = on; onchange(); }));
  return list;
}

function replace(spec, by) {
  for (const name of Object.keys(spec)) delete spec[name];
  Object.assign(spec, by);
}

function numbers(spec, onchange) {
  const set = (name, factor = 1) => (value) => { spec[name] = Math.round(value * factor); onchange(); };
  const limit = field(spec.kind === 'throttle' ? 'Burst: units at once' : 'Limit: units', number(spec.limit, { min: 1, max: 1000 }, set('limit')));
  const period = field(spec.kind === 'throttle' ? 'Per seconds' : 'Period in seconds', number(spec.period / 1000, { min: 0.1, max: 3600, step: 'any' }, set('period', 1000)));
  if (spec.kind !== 'throttle') return [limit, period];
  return [limit, field('Then: units', number(spec.count, { min: 1, max: 1000 }, set('count'))), period];
}

function quantity(spec, onchange) {
  return field('Units per call', number(spec.quantity ?? 1, { min: 1, max: 1000 }, (value) => { spec.quantity = value; onchange(); }));
}

function optionFields(spec, onchange, draw) {
  const mode = select(options[spec.kind], spec.mode ?? '', (value) => {
    spec.mode = value || undefined;
    spec.time = timed(spec) ? 3000 : undefined;
    draw('mode');
    onchange();
  });
  mode.dataset.name = 'mode';
  const list = [field('Option', mode)];
  if (timed(spec)) {
    const label = spec.mode === 'reserve' ? 'Longest wait in seconds' : 'Pause in seconds';
    list.push(field(label, number(spec.time / 1000, { min: 0.1, max: 3600, step: 'any' }, (value) => { spec.time = Math.round(value * 1000); onchange(); })));
  }
  return list;
}

function policyFields(spec, policies, onchange, draw) {
  const policy = select(policies.map((p) => [p.name, p.name]), spec.policy, (value) => { spec.policy = value; draw('policy'); onchange(); });
  policy.dataset.name = 'policy';
  return [field('Policy', policy, policies.find((p) => p.name === spec.policy)?.text), quantity(spec, onchange)];
}

function clauseFields(spec, onchange, draw) {
  const list = spec.clauses.map((clause, i) => {
    const kind = select(kinds.slice(0, 3), clause.kind, (value) => { replace(clause, fresh(value)); draw(`clause${i}`); onchange(); });
    kind.dataset.name = `clause${i}`;
    const remove = spec.clauses.length > 1 && h('button', { type: 'button', class: 'quiet small', onclick: () => {
      spec.clauses.splice(i, 1);
      draw('add');
      onchange();
    } }, `Remove part ${i + 1}`);
    return h('fieldset', { class: 'clause' }, h('legend', {}, `Part ${i + 1}`), field('Limiter', kind), ...numbers(clause, onchange), quantity(clause, onchange), remove);
  });
  const add = spec.clauses.length < 3 && h('button', { type: 'button', class: 'quiet small', 'data-name': 'add', onclick: () => {
    spec.clauses.push(fresh('quota'));
    draw(`clause${spec.clauses.length - 1}`);
    onchange();
  } }, 'Add a part');
  return [...list, add || undefined].filter(Boolean);
}
