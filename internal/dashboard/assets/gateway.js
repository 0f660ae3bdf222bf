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
  nodes(live, m.nodes || []);
  headroom(m.headroom || []);
}

function nodes(live, list) {
  $('nodes').hidden = !list.length;
  keyed($('nodes').tBodies[0], list, (n) => n.id ?? n.name, () => h('tr', {}, h('th', { scope: 'row' }), h('td'), h('td')), (tr, n) => {
    text(tr.cells[0], String(n.id ?? n.name) + (n.self ? ' (this one)' : ''));
    fill(tr.cells[1], n.state ?? (n.stale ? 'stale' : 'ok'), (s) => chip(s === 'ok' || s === 'alive' ? { icon: 'ok', tone: 'ok' } : { icon: 'warn', tone: 'warn' }, s));
    const at = n.last_contact ?? n.last_seen ?? n.seen_at;
    text(tr.cells[2], at ? clock(at) : '–');
  });
}

/** Each bucket is one limit of an upstream: how much is left of how much, and when it is full again. */
function headroom(list) {
  $('headroom-none').hidden = list.length > 0;
  keyed($('headroom-list'), list, (b) => [b.provider, b.connection, b.model, b.bucket ?? b.name].join('/'), () => {
    const li = h('li');
    li.name = h('span');
    li.value = h('span', { class: 'num' });
    li.meter = h('meter', { min: 0, max: 1, low: 0.1, high: 0.3, optimum: 1 });
    li.more = h('span', { class: 'muted small' });
    li.append(li.name, li.value, li.meter, li.more);
    return li;
  }, (li, b) => {
    const known = b.limit > 0 && b.remaining !== null && b.remaining !== undefined;
    const part = known ? Math.max(0, Math.min(1, b.remaining / b.limit)) : 0;
    const name = [b.provider, b.connection, b.model].filter(Boolean).join('/') + ' ' + (b.bucket ?? b.name ?? '');
    text(li.name, name);
    text(li.value, known ? `${count(b.remaining)} of ${count(b.limit)}` : 'unknown');
    li.meter.value = part;
    attr(li.meter, 'aria-label', `${name}: ${known ? Math.round(part * 100) + '% left' : 'unknown'}`);
    const at = b.reset_at ?? b.resets_at;
    text(li.more, [b.stale && 'stale', at && `full at ${clock(at)}`].filter(Boolean).join(', '));
  });
}
