// Words and numbers as people read them.

const looks = {
  // combos
  untargeted: { icon: 'bad', tone: 'bad', words: 'no target left', rank: 9 },
  // breakers
  CLOSED: { icon: 'ok', tone: 'ok', words: 'closed', rank: 0 },
  DEGRADED: { icon: 'warn', tone: 'warn', words: 'degraded', rank: 2 },
  OPEN: { icon: 'bad', tone: 'bad', words: 'open', rank: 6 },
  HALF_OPEN: { icon: 'probe', tone: 'probe', words: 'half open', rank: 4 },
  // connections
  ready: { icon: 'ok', tone: 'ok', words: 'ready', rank: 0 },
  cooling: { icon: 'cool', tone: 'warn', words: 'cooling', rank: 3 },
  probing: { icon: 'probe', tone: 'probe', words: 'probing', rank: 2 },
  quarantined: { icon: 'person', tone: 'person', words: 'needs a person', rank: 7 },
  excluded: { icon: 'hand', tone: 'hand', words: 'excluded by an operator', rank: 1 },
  // models
  locked: { icon: 'lock', tone: 'warn', words: 'model locked', rank: 3 },
};

/** How a state looks: its picture, its colour and its words. */
export const look = (state) => looks[state] || { icon: 'warn', tone: 'warn', words: String(state), rank: 1 };

const kinds = {
  rate_limit: 'rate limited', quota_exhausted: 'quota spent', billing: 'credit gone', auth: 'key refused',
  permission: 'not permitted', model_not_found: 'model does not exist', model_overloaded: 'model overloaded',
  server_error: 'server errors', timeout: 'no answer in time', network: 'not reachable',
  malformed_response: 'broken answers', empty_response: 'empty answers', context_length: 'prompt too long',
  content_policy: 'content refused', invalid_request: 'bad request', too_large: 'too large', canceled: 'client left',
  unknown: 'unknown',
};

/** What a kind of failure means. */
export const cause = (kind) => (kind ? kinds[kind] || kind : '');

/** How long, from milliseconds: 1.8 s, 42 s, 3 min 10 s, 2 h 05 min, 3 d 4 h. */
export function long(ms) {
  const s = ms / 1000;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  const two = (n) => String(Math.floor(n)).padStart(2, '0');
  if (s < 3600) return `${Math.floor(s / 60)} min ${two(s % 60)} s`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)} h ${two((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** How long is left, in whole seconds: 42 s, 9:57 min, 2:05 h, 3 d 4 h. */
export function left(ms) {
  const s = Math.ceil(ms / 1000);
  const two = (n) => String(n).padStart(2, '0');
  if (s < 120) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)}:${two(s % 60)} min`;
  return s < 48 * 3600 ? `${Math.floor(s / 3600)}:${two(Math.floor((s % 3600) / 60))} h` : long(ms);
}

const clockFormat = new Intl.DateTimeFormat([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const dayFormat = new Intl.DateTimeFormat([], { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });

/** A time of day; with the day where it is another one. */
export function clock(at, now = Date.now()) {
  const t = new Date(at);
  return Math.abs(t - now) < 20 * 3600_000 ? clockFormat.format(t) : dayFormat.format(t);
}

const numbers = new Intl.NumberFormat('en');
export const count = (n) => numbers.format(n);
export const plural = (n, one, many = one + 's') => `${count(n)} ${n === 1 ? one : many}`;

/** A share as a percentage that tells little from nothing. */
export function share(part, whole) {
  if (!whole || !part) return '0%';
  const p = (100 * part) / whole;
  if (p < 0.1) return '<0.1%';
  return p < 10 ? `${p.toFixed(1)}%` : `${Math.round(p)}%`;
}

/** Names in a sentence: a, a and b, a, b and 3 more. */
export function listed(names, few = 2) {
  const shown = names.slice(0, few);
  if (names.length > few) shown.push(`${names.length - few} more`);
  return shown.length > 1 ? `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}` : shown.join('');
}

/** The name of what is out. */
export const nameOf = (x) => x.combo || [x.provider, x.connection || (x.model ? '*' : ''), x.model].filter(Boolean).join('/');
