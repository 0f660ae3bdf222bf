// The inventory: every provider with its breaker and the strip of its states, and its connections.
import { $, attr, chip, fill, h, keyed, text } from './dom.js';
import { cause, clock, count, look, nameOf, plural, share } from './format.js';
import { countdown, until } from './countdown.js';
import { draw, reach } from './timeline.js';
import * as actions from './actions.js';

const wish = { filter: '', onlyOut: false, sort: 'name' };

/** Reads the wishes above the table, and again when they change. */
export function start(again) {
  const read = () => {
    wish.filter = $('filter').value.trim().toLowerCase();
    wish.onlyOut = $('only-out').checked;
    wish.sort = $('sort').value;
    again();
  };
  for (const id of ['filter', 'only-out', 'sort']) $(id).addEventListener('input', read);
  read(); // a browser may have kept them over a reload
}

const isOut = (c) => c.state !== 'ready' || Boolean(c.models?.length) || Boolean(c.breaker && c.breaker.state !== 'CLOSED');
const providerOut = (p) => !p.available || p.breaker.state !== 'CLOSED';

function matches(p, c) {
  if (!wish.filter) return true;
  const words = [p.id, p.breaker.state, look(p.breaker.state).words, p.breaker.kind, cause(p.breaker.kind)];
  if (c) words.push(c.id, c.state, look(c.state).words, c.kind, cause(c.kind), ...(c.models || []));
  const text = words.filter(Boolean).join(' ').toLowerCase();
  return wish.filter.split(/\s+/).every((w) => text.includes(w));
}

const orders = {
  name: (a, b) => a.order - b.order,
  worst: (a, b) => b.rank - a.rank || a.order - b.order,
  soonest: (a, b) => (a.at || '~').localeCompare(b.at || '~') || a.order - b.order,
  level: (a, b) => b.level - a.level || a.order - b.order,
  asked: (a, b) => b.asked - a.asked || a.order - b.order,
};

/** Providers with those of their connections that are wanted, in the wanted order. */
function groups(live) {
  const by = new Map();
  for (const c of live.all('c:')) by.get(c.provider)?.push(c) ?? by.set(c.provider, [c]);
  const out = [];
  for (const p of live.all('p:')) {
    const own = (by.get(p.id) || []).map((c) => ({ c, order: c.order, rank: Math.max(look(c.state).rank, c.breaker ? look(c.breaker.state).rank : 0), at: c.until, level: c.level, asked: 0 }));
    let kept = own.filter(({ c }) => (!wish.onlyOut || isOut(c)) && matches(p, c));
    if (!kept.length && !(matches(p) && (!wish.onlyOut || providerOut(p)))) continue;
    kept = kept.sort(orders[wish.sort]);
    const times = [p.available_at, ...own.map((x) => x.at)].filter(Boolean).sort();
    out.push({
      p, kept, total: own.length, order: p.order, at: times[0], asked: p.attempts, level: Math.max(0, ...own.map((x) => x.level)),
      rank: Math.max(look(p.breaker.state).rank, p.available || !p.connections ? 0 : 5, ...own.map((x) => x.rank)),
    });
  }
  return out.sort(orders[wish.sort]);
}

export function render(live) {
  const list = groups(live);
  const lines = new Map([...live.docs].filter(([k]) => k.startsWith('t:')).map(([k, doc]) => [k.slice(2), doc]));
  const operator = new Map(live.all('o:').map((o) => [nameOf(o), o]));
  const shown = list.reduce((n, g) => n + g.kept.length, 0);
  const whole = live.all('c:').length;
  text($('providers-count'), whole ? (shown === whole ? plural(whole, 'connection') : `${shown} of ${plural(whole, 'connection')}`) : '');
  const table = $('providers-table');
  table.hidden = !list.length;
  $('providers-none').hidden = list.length > 0;
  text($('providers-none'), !live.all('p:').length ? 'No provider is configured.' : wish.onlyOut && !wish.filter ? 'Nothing is out.' : 'Nothing matches.');
  const words = reach(live).words;
  text($('window'), words[0].toUpperCase() + words.slice(1));
  const ctx = { lines, operator, now: live.now };
  keyed(table, list, (g) => g.p.id, makeGroup, (body, g) => updateGroup(body, g, ctx)); // one body a provider
}

function makeGroup() {
  const body = h('tbody');
  body.head = h('tr', { class: 'group', tabindex: '-1' });
  const head = body.head;
  head.name = h('b');
  head.asked = h('span', { class: 'muted small' });
  head.strip = h('td', { class: 'hour', 'data-name': 'Lately' });
  head.state = h('td', { 'data-name': 'Breaker' });
  head.why = h('td', { 'data-name': 'Cause' });
  head.back = countdown();
  head.act = h('td', { class: 'act' });
  head.append(h('th', { scope: 'rowgroup' }, head.name, head.asked), head.state, head.strip, head.why, h('td', { 'data-name': 'Back' }, head.back), h('td', { class: 'num' }), head.act);
  body.append(head);
  return body;
}

function updateGroup(body, { p, kept, total }, ctx) {
  const b = p.breaker;
  const head = body.head;
  text(head.name, p.id);
  text(head.asked, p.attempts ? ` ${count(p.attempts)} calls, ${share(p.wasted, p.attempts)} wasted` : '');
  const own = ctx.operator.get(p.id);
  const state = own ? 'excluded' : b.state;
  attr(head, 'class', `group tone-${look(state).tone}`);
  const noKey = !total;
  fill(head.state, [state, p.available, b.failures, b.failure_threshold, noKey], () => {
    if (noKey) return chip({ icon: 'warn', tone: 'warn' }, 'no connection has a key');
    if (own) return chip(look('excluded'), 'excluded');
    if (b.state === 'DEGRADED') return chip(look(b.state), `degraded ${b.failures}/${b.failure_threshold}`);
    if (b.state === 'CLOSED' && !p.available) return chip(look('OPEN'), 'all out');
    return chip(look(b.state), b.state === 'CLOSED' ? 'closed' : look(b.state).words);
  });
  draw(head.strip, p.id, [ctx.lines.get('breaker:' + p.id), ctx.lines.get('operator:' + p.id)], ctx.now);
  why(head.why, own ? own.reason : cause(b.kind), b.last_failure_at);
  until(head.back, own ? own.until : b.state === 'OPEN' || b.state === 'HALF_OPEN' ? b.next_at || b.reset_at : p.available ? null : p.available_at, own || !p.available && p.connections ? 'by hand' : '');
  acts(head.act, { provider: p.id }, own ? b.state !== 'CLOSED' : providerOut(p), own); // an exclusion is no matter of a reset
  keyed(body, kept, ({ c }) => c.id, makeRow, (tr, { c }) => updateRow(tr, c, ctx)); // below the provider's own row
}

function makeRow() {
  const tr = h('tr', { tabindex: '-1' });
  tr.name = h('th', { scope: 'row' });
  tr.state = h('td', { 'data-name': 'State' });
  tr.strip = h('td', { class: 'hour', 'data-name': 'Lately' });
  tr.why = h('td', { 'data-name': 'Cause' });
  tr.back = countdown();
  tr.level = h('td', { class: 'num', 'data-name': 'Level' });
  tr.act = h('td', { class: 'act' });
  tr.append(tr.name, tr.state, tr.strip, tr.why, h('td', { 'data-name': 'Back' }, tr.back), tr.level, tr.act);
  return tr;
}

function updateRow(tr, c, ctx) {
  const own = ctx.operator.get(`${c.provider}/${c.id}`);
  text(tr.name, c.id);
  const some = c.models?.length ? `, ${c.models.length === 1 ? '1 model' : c.models.length + ' models'} only` : '';
  fill(tr.state, [c.state, some, c.breaker?.state], () => [
    chip(look(c.state), c.state === 'excluded' ? 'excluded' : look(c.state).words + some),
    c.breaker && c.breaker.state !== 'CLOSED' ? chip(look(c.breaker.state), 'breaker ' + look(c.breaker.state).words) : null,
  ]);
  attr(tr, 'class', `tone-${look(c.state).tone}`);
  const name = `${c.provider}/${c.id}`;
  draw(tr.strip, name, [ctx.lines.get('breaker:' + name), ctx.lines.get('connection:' + name), ctx.lines.get('operator:' + name)], ctx.now);
  const models = c.models?.length ? `: ${c.models.join(', ')}` : '';
  why(tr.why, own ? own.reason : cause(c.kind) + models, c.last_error?.at, c.last_error && cause(c.last_error.kind), c.last_error?.rule);
  const b = c.breaker && c.breaker.state !== 'CLOSED' ? c.breaker : null;
  until(tr.back, own ? own.until : c.until || b?.next_at || b?.reset_at, own || c.state === 'quarantined' ? 'by hand' : '');
  text(tr.level, c.level ? String(c.level) : '');
  acts(tr.act, { provider: c.provider, connection: c.id }, isOut(c) && c.state !== 'excluded', own);
}

/** The cause that holds, and when something failed last. */
function why(cell, now, at, last, rule) {
  fill(cell, [now, at, last, rule], () => [
    now && h('div', { text: now }),
    at && h('div', { class: 'muted small', title: rule ? `rule ${rule}` : null, text: `last ${now || !last ? 'failure' : last} ${clock(at)}` }),
  ]);
}

/** The buttons of a row. */
function acts(cell, key, out, own) {
  fill(cell, [Boolean(out), Boolean(own)], () => {
    const button = (words, f, tone) => h('button', { type: 'button', class: tone, 'aria-label': `${words}: ${nameOf(key)}`, onclick: () => f(key), text: words });
    return [
      out && button('Reset', actions.reset, ''),
      own ? button('End exclusion', actions.include, '') : button('Exclude', actions.exclude, 'quiet'),
    ];
  });
}
