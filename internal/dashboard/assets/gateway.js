// The gateway itself: its store, its nodes, and what is left of upstreams' limits.
import { $, attr, chip, fill, h, keyed, text } from './dom.js';
import { clock, count } from './format.js';

const stores = {
  ok: [{ icon: 'ok', tone: 'ok' }, 'saved'],
  degraded: [{ icon: 'bad', tone: 'bad' }, 'cannot be saved; routing goes on from memory'],
  off: [{ icon: 'hand', tone: 'hand' }, 'not saved: no store is configured'],
};
const clusters = {
  single: [{ icon: 'ok', tone: 'ok' }, 'one node by itself'],
  ok: [{ icon: 'ok', tone: 'ok' }, 'shared'],
  isolated: [{ icon: 'bad', tone: 'bad' }, 'isolated: this node goes on by itself'],
  degraded: [{ icon: 'warn', tone: 'warn' }, 'degraded'],
};

export function render(live) {
  const m = live.get('meta');
  if (!m) return;
  text($('version'), m.version);
  const word = (table, value) => chip(...(table[value] || [{ icon: 'warn', tone: 'warn' }, String(value)]));
  fill($('facts'), [m.persistence, m.cluster, m.panic, m.local_outage, m.waiting, m.version], () => [
    ['State', word(stores, m.persistence)],
    ['Cluster', word(clusters, m.cluster)],
    ['Own network', m.local_outage ? chip({ icon: 'bad', tone: 'bad' }, 'out: nothing is blamed for it') : chip({ icon: 'ok', tone: 'ok' }, 'well')],
    ['Last resort', m.panic ? chip({ icon: 'warn', tone: 'warn' }, 'in use: targets that are out are tried') : 'not in use'],
    ['Waiting', `${count(m.waiting)} requests`],
    ['Version', m.version],
  ].map(([k, v]) => h('div', {}, h('dt', { text: k }), h('dd', {}, v))));
  nodes(live.get('nodes') || [], m.node_count || 0);
  places(live.get('places') || []);
  headroom(live.get('headroom') || []);
}

function nodes(list, count) {
  $('nodes').hidden = !list.length;
  text($('nodes-more'), count > list.length ? `and ${count - list.length} more` : '');
  keyed($('nodes').tBodies[0], list, (n) => n.id, () => h('tr', {}, h('th', { scope: 'row' }), h('td'), h('td')), (tr, n) => {
    text(tr.cells[0], n.id + (n.self ? ' (this one)' : ''));
    fill(tr.cells[1], n.stale, (stale) => (stale ? chip({ icon: 'warn', tone: 'warn' }, 'stale') : chip({ icon: 'ok', tone: 'ok' }, 'well')));
    text(tr.cells[2], n.last_contact ? clock(n.last_contact) : '–');
  });
}

const gauge = () => {
  const li = h('li');
  li.name = h('span');
  li.amount = h('span', { class: 'num' });
  li.meter = h('meter', { min: 0, max: 1 });
  li.more = h('span', { class: 'muted small' });
  li.append(li.name, li.amount, li.meter, li.more);
  return li;
};

function show(li, name, value, part, words, more) {
  text(li.name, name);
  text(li.amount, value);
  li.meter.value = Math.max(0, Math.min(1, part));
  attr(li.meter, 'aria-label', `${name}: ${words}`);
  text(li.more, more);
}

/** Each bucket is one limit of an upstream: how much is left of how much, and when it is full again. */
function headroom(list) {
  $('headroom-none').hidden = list.length > 0;
  keyed($('headroom-list'), list, (b) => [b.provider, b.connection, b.model, b.bucket].join('/'), () => {
    const li = gauge();
    Object.assign(li.meter, { low: 0.1, high: 0.3, optimum: 1 });
    return li;
  }, (li, b) => {
    const part = b.limit > 0 ? b.remaining / b.limit : 0;
    show(li, `${[b.provider, b.connection, b.model].filter(Boolean).join('/')} ${b.bucket}`, `${count(b.remaining)} of ${count(b.limit)} left`, part,
      `${Math.round(part * 100)}% left`, b.reset_at ? `full at ${clock(b.reset_at)}` : '');
  });
}

/** The places of connections that take so many calls at once and no more. */
function places(list) {
  $('places').hidden = !list.length;
  keyed($('places-list'), list, (c) => c.provider + '/' + c.connection, () => {
    const li = gauge();
    Object.assign(li.meter, { low: 0.7, high: 0.95, optimum: 0 });
    return li;
  }, (li, c) => show(li, `${c.provider}/${c.connection}`, `${c.running} of ${c.max_concurrent} in use`, c.running / c.max_concurrent,
    `${c.running} of ${c.max_concurrent} in use`, c.queued ? `${c.queued} wait for a place` : ''));
}
