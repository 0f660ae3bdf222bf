// What is out: the headline, and the list that says what, why, until when.
import { $, attr, chip, fill, h, icon, keyed, text } from './dom.js';
import { cause, clock, listed, long, look, nameOf, plural, share } from './format.js';
import { countdown, until } from './countdown.js';
import * as actions from './actions.js';
import { ask } from './explain.js';

const few = 10; // rows before "show all"
let all = false;

/** Everything that is out of service, the gravest first. */
export function outages(live) {
  const list = [];
  const operator = new Map(live.all('o:').map((o) => [nameOf(o), o]));
  const gone = new Set(live.all('p:').filter((p) => p.connections && !p.available).map((p) => p.id));
  for (const c of live.all('k:')) if (!c.available) list.push({ key: 'k' + c.id, combo: c.id, state: 'untargeted', kind: c.kind, at: c.available_at });
  for (const p of live.all('p:')) {
    const b = p.breaker;
    if (b.state === 'OPEN' || b.state === 'HALF_OPEN') list.push({ key: 'b' + p.id, provider: p.id, state: b.state, what: 'breaker', kind: b.kind, at: b.next_at || b.reset_at, since: b.opened_at, probe: Boolean(b.next_at) });
  }
  for (const c of live.all('c:')) {
    const x = { key: 'c' + c.provider + '/' + c.id, provider: c.provider, connection: c.id, state: c.state, kind: c.kind, at: c.until, since: c.last_error?.at, rule: c.last_error?.rule, level: c.level };
    const b = c.breaker;
    if (b && (b.state === 'OPEN' || b.state === 'HALF_OPEN')) list.push({ ...x, key: 'B' + x.key, state: b.state, what: 'breaker', kind: b.kind, at: b.next_at || b.reset_at, since: b.opened_at });
    if (c.state === 'quarantined' || c.state === 'cooling') list.push({ ...x, models: c.models });
  }
  for (const l of live.all('l:')) list.push({ key: 'l' + nameOf(l), provider: l.provider, connection: l.connection, model: l.model, state: 'locked', kind: l.kind, at: l.until, failures: l.failures, ladder: !l.locked });
  for (const [name, o] of operator) list.push({ key: 'o' + name, provider: o.provider, connection: o.connection, model: o.model, state: 'excluded', at: o.until, reason: o.reason });
  // What takes a whole provider out is graver than what leaves it another connection.
  const rank = (x) => look(x.state).rank + (x.state === 'cooling' && gone.has(x.provider) ? 2.5 : 0);
  return list.sort((a, b) => rank(b) - rank(a) || (a.at || '~').localeCompare(b.at || '~') || a.key.localeCompare(b.key));
}

/** What the headline says, as words and a level: ok, warn or bad. */
export function headline(live, list) {
  const providers = live.all('p:').filter((p) => p.connections > 0);
  const gone = providers.filter((p) => !p.available);
  const meta = live.get('meta') || {};
  const n = (f) => list.filter(f).length;
  const person = n((x) => x.state === 'quarantined');
  const trouble = [];
  if (meta.local_outage) trouble.push('This machine’s own network is out');
  if (meta.panic) trouble.push('Requests go to targets that are out, as a last resort');
  if (meta.persistence === 'degraded') trouble.push('The state cannot be saved');
  const lost = live.all('k:').filter((c) => !c.available);
  const some = gone.length > 2 ? `${gone.length} providers are out` : gone.length && `${listed(gone.map((p) => p.id))} ${gone.length > 1 ? 'are' : 'is'} out`;
  const every = trouble.length || lost.length ? 'all' : 'All';
  const parts = [
    lost.length && `No target left for ${listed(lost.map((c) => c.id))}`,
    gone.length && gone.length === providers.length ? (gone.length === 1 ? some : `${every} ${gone.length} providers are out`) : some,
    person && `${plural(person, 'connection')} ${person === 1 ? 'needs' : 'need'} a person`,
    n((x) => x.state === 'cooling' && x.kind) && plural(n((x) => x.state === 'cooling' && x.kind), 'connection') + ' cooling',
    n((x) => x.state === 'locked' && !x.ladder) && plural(n((x) => x.state === 'locked' && !x.ladder), 'model') + ' locked',
    n((x) => x.state === 'excluded') && `${n((x) => x.state === 'excluded')} excluded by an operator`,
  ].filter(Boolean);
  const soonest = list.filter((x) => x.at && Date.parse(x.at) > live.now).map((x) => x.at).sort()[0];
  const words = [...trouble, ...parts];
  const breakers = n((x) => x.what === 'breaker' && !gone.some((p) => p.id === x.provider));
  if (breakers) words.push(`${plural(breakers, 'breaker')} open`);
  const r = live.get('recent');
  const failing = r?.requests >= 20 && r.failed / r.requests > 0.01;
  const level = trouble.length || gone.length || lost.length ? 'bad' : words.length || list.length || failing ? 'warn' : 'ok';
  if (!words.length && !list.length && failing) words.push('Nothing is out, but clients saw failures');
  if (!words.length) words.push(list.length ? plural(list.length, 'model') + ' held back after failures' : providers.length ? 'All well' : 'No provider has a connection with a key');
  // Two things are read at a glance; the others stand in the line below.
  return { level, words: words.slice(0, 2).join(', '), others: words.slice(2).join(', '), soonest, providers, gone };
}

function cost(live) {
  const r = live.get('recent');
  if (!r?.requests) return 'No client has asked in the last five minutes.';
  const failed = r.failed ? `Clients saw ${plural(r.failed, 'failure')} (${share(r.failed, r.requests)})` : 'No client saw a failure';
  const saved = r.recovered ? `; ${plural(r.recovered, 'request')} saved by failover or after a wait, ${long(r.delay_ms / r.recovered)} later on average` : '';
  return `${failed} in the last five minutes${saved}.`;
}

export function renderHeadline(live, list) {
  const head = headline(live, list);
  attr($('headline'), 'data-level', head.level);
  fill($('headline-icon'), head.level, (l) => icon({ ok: 'ok', warn: 'warn', bad: 'bad' }[l]));
  text($('headline-title'), head.words);
  const connections = live.all('c:').length;
  const more = $('headline-more');
  if (!more.count) {
    more.replaceChildren(more.lead = h('span'), more.count = countdown(), more.rest = h('span'));
  }
  until(more.count, head.soonest);
  text(more.lead, head.soonest ? 'Next back ' : '');
  const inventory = `${plural(head.providers.length, 'provider')}, ${plural(connections, 'connection')}. `;
  text(more.rest, (head.soonest ? '. ' : '') + (head.others && `Also ${head.others}. `) + (list.length ? '' : inventory) + cost(live));
  document.title = (head.level === 'ok' ? '' : `(${head.gone.length || list.length}) `) + 'OmniRoute: ' + head.words;
  const name = { ok: 'well', warn: 'warn', bad: 'out' }[head.level];
  const base = document.querySelector('meta[name=assets]').content;
  attr($('icon'), 'href', `${base}/${name}.svg`);
}

export function renderOut(live, list) {
  const shown = all ? list : list.slice(0, few);
  text($('out-count'), list.length ? String(list.length) : '');
  $('out').hidden = !list.length;
  $('out-none').hidden = list.length > 0;
  text($('out-none'), live.all('c:').length ? 'Nothing. Every provider, connection and model is in service.' : 'No connection is configured. Add one to the configuration; it is taken over by itself.');
  const more = $('out-all');
  more.hidden = list.length <= few;
  text(more, all ? 'Show the gravest only' : `Show all ${list.length}`);
  attr(more, 'aria-expanded', all);
  more.onclick = () => {
    all = !all;
    renderOut(live, list);
  };
  keyed($('out').tBodies[0], shown, (x) => x.key, makeRow, updateRow);
}

function makeRow(x) {
  const tr = h('tr', { tabindex: '-1' });
  tr.name = h('b');
  tr.state = h('div');
  tr.why = h('div');
  tr.more = h('div', { class: 'muted small' });
  tr.back = countdown();
  tr.then = h('div', { class: 'muted small' });
  const act = x.combo
    ? h('button', { type: 'button', onclick: () => ask(x.combo), text: 'Explain' })
    : x.state === 'excluded'
    ? h('button', { type: 'button', onclick: () => actions.include(tr.item), text: 'End exclusion' })
    : h('button', { type: 'button', onclick: () => actions.reset(tr.item), text: 'Reset' });
  const out = x.state === 'excluded' || x.combo ? null : h('button', { type: 'button', class: 'quiet', onclick: () => actions.exclude(tr.item), text: 'Exclude' });
  const name = nameOf(x);
  act.setAttribute('aria-label', `${act.textContent}: ${name}`);
  out?.setAttribute('aria-label', `Exclude: ${name}`);
  tr.append(h('th', { scope: 'row', 'data-name': 'What' }, tr.state, tr.name), h('td', { 'data-name': 'Why' }, tr.why, tr.more), h('td', { 'data-name': 'Back' }, tr.back, tr.then), h('td', { class: 'act' }, act, out));
  return tr;
}

function updateRow(tr, x) {
  tr.item = x;
  const l = look(x.state);
  attr(tr, 'class', 'tone-' + l.tone);
  fill(tr.state, [x.state, x.what, x.ladder], () => chip(l, x.what ? `breaker ${l.words}` : x.ladder ? 'model held back' : l.words));
  text(tr.name, nameOf(x));
  text(tr.why, x.combo ? 'every target is out: its clients get errors' : x.state === 'excluded' ? x.reason || 'no reason was given' : cause(x.kind) || '–');
  text(tr.more, [
    x.combo && x.kind && `the first: ${cause(x.kind)}`,
    x.models?.length && `only ${x.models.join(', ')}`,
    x.level > 0 && `level ${x.level}`,
    x.failures && plural(x.failures, 'failure') + ' in a row',
    x.rule && `rule ${x.rule}`,
    x.since && `since ${clock(x.since)}`,
  ].filter(Boolean).join(' · '));
  until(tr.back, x.at, x.state === 'quarantined' ? 'by hand' : x.state === 'excluded' ? 'by hand' : 'at the next request');
  text(tr.then, x.probe ? 'next probe' : x.at ? `until ${clock(x.at)}` : '');
}
