'use strict';

// A limit's numbers, checked, from the words of a caller, and what the server is sent for them.

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const PERIODS = { perSecond: 1000, perMinute: UNITS.m, perHour: UNITS.h, perDay: UNITS.d, perMonth: 31 * UNITS.d };
const LONGEST = 36_500 * UNITS.d;
const MOST = 1e12;

// Returns a time in ms: a number, or a text such as 250ms, 5s, 15m, 1h or 1d.
exports.milliseconds = function milliseconds(name, time, least = 1) {
  const [, number, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(time) ?? [];
  const ms = unit ? Number(number) * UNITS[unit] : time;
  if (!Number.isInteger(ms) || ms < least || ms > LONGEST) {
    throw new TypeError(`${name} must be whole milliseconds, or a time such as "15m", up to 100 years`);
  }
  return ms;
};

exports.units = function units(name, n, least = 1) {
  if (!Number.isInteger(n) || n < least || n > MOST) throw new TypeError(`${name} must be a whole number from ${least} to 10^12`);
  return n;
};

function per(limit) {
  const short = Object.keys(PERIODS).filter((name) => limit[name] !== undefined);
  if (short.length + (limit.per !== undefined) !== 1) {
    throw new TypeError(`a limit needs one of ${Object.keys(PERIODS).join(', ')}, or limit and per`);
  }
  const [name] = short;
  return { count: exports.units(name ?? 'limit', limit[name ?? 'limit']), monthly: name === 'perMonth',
    period: name ? PERIODS[name] : exports.milliseconds('per', limit.per) };
}

const KINDS = {
  rate(limit) {
    const { count, period, monthly } = per(limit);
    if (monthly) throw new TypeError('perMonth is for a quota');
    const units = exports.units('burst', limit.burst ?? count);
    const lockout = limit.lockout === undefined ? undefined : exports.milliseconds('lockout', limit.lockout);
    return { units, lockout, span: Math.ceil(units * period / count), words: [units - 1, count, period], count, period };
  },

  window(limit) {
    const { count, period, monthly } = per(limit);
    if (monthly) throw new TypeError('perMonth is for a quota');
    return { units: count, span: period, words: [count, period], last: limit.exact ? ['EXACT'] : [], period };
  },

  quota(limit) {
    const { count, period, monthly } = per(limit);
    const zone = limit.zone ?? (monthly ? 'UTC' : undefined);
    const clock = zone && new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' });
    const offset = clock && (() => clock.formatToParts().find(({ type }) => type === 'timeZoneName').value.slice(3) || '+00:00');
    return { units: count, span: period, words: [count, monthly ? '1mo' : period], period, monthly, offset };
  },

  slots(limit) {
    const [units, ttl] = [exports.units('limit', limit.limit), exports.milliseconds('ttl', limit.ttl)];
    return { units, span: ttl, words: [units, ttl], period: ttl };
  },
};

const COMMANDS = { rate: 'THROTTLE', window: 'WINDOW', quota: 'QUOTA', slots: 'LEASE' };

exports.bounds = function bounds(kind, limit) {
  return { kind, command: COMMANDS[kind], last: [], ...KINDS[kind](limit) };
};

// Returns when a window of a quota ends that begins now.
exports.end = function end({ offset, monthly, period }, now) {
  if (!offset) return now + period;
  const [, sign, hours, minutes] = /(.)(..):(..)/.exec(offset());
  const ahead = (hours * 60 + Number(minutes)) * UNITS.m * (sign === '-' ? -1 : 1);
  const local = new Date(now + ahead);
  return (monthly ? Date.UTC(local.getUTCFullYear(), local.getUTCMonth() + 1) : (Math.floor(local / period) + 1) * period) - ahead;
};

// Returns the part of the bounds that one process decides by: a share, at least one unit in a longer time.
exports.share = function share({ ...bounds }, part) {
  const units = bounds.units * part;
  if (bounds.kind === 'rate') bounds.period /= part;
  else if (units < 1) bounds.period /= units;
  bounds.units = Math.max(1, Math.floor(units));
  return bounds;
};
