// The last requests, each with its attempts as a small waterfall, and one request's whole story.
import { $, attr, chip, fill, h, keyed, svg, text } from './dom.js';
import { cause, clock, count, listed, long, plural } from './format.js';
import { api } from './actions.js';

const few = 12;
let all = false;
let held = null; // the requests as they were when the list was told to hold still

export function start(again, live) {
  $('only-odd').addEventListener('input', again);
  $('pause').addEventListener('click', () => {
    held = held ? null : live.all('r:');
    attr($('pause'), 'aria-pressed', Boolean(held));
    text($('pause'), held ? 'Go on' : 'Hold still');
    again();
  });
  $('find').addEventListener('submit', (e) => {
    e.preventDefault();
    if ($('find-id').value.trim()) open($('find-id').value.trim());
  });
  $('story-close').addEventListener('click', () => $('story').close());
  $('story').addEventListener('close', () => {
    if (location.hash === address($('story').shown)) history.replaceState(null, '', location.pathname);
    $('story').back?.isConnected && $('story').back.focus({ preventScroll: true });
  });
  const follow = () => location.hash.startsWith('#request/') && open(decodeURIComponent(location.hash.slice(9)));
  addEventListener('hashchange', follow);
  follow();
}

function statusChip(r) {
  if (r.broke) return chip({ icon: 'bad', tone: 'bad' }, `${r.status}, cut off`);
  if (r.status === 499) return chip({ icon: 'hand', tone: 'hand' }, 'client left');
  if (r.status >= 500 || r.status === 429) return chip({ icon: 'bad', tone: 'bad' }, String(r.status));
  if (r.status >= 400) return chip({ icon: 'warn', tone: 'warn' }, String(r.status));
  return chip({ icon: 'ok', tone: 'ok' }, String(r.status));
}

const tone = (a) => (a.outcome === 'answered' ? 'ok' : a.outcome === 'failed' || a.outcome === 'deadline' ? 'bad' : 'idle');
const fate = (a) => [a.target, a.outcome, a.status || '', cause(a.kind), `after ${long(a.after_ms)}`, `took ${long(a.duration_ms)}`].filter(Boolean).join(', ');

/** The attempts on the request's time: bars one below the other, failed ones hatched. */
function waterfall(r, tall) {
  const total = Math.max(r.duration_ms, ...r.attempts.map((a) => a.after_ms + a.duration_ms), 1);
  const x = (ms) => (1000 * ms) / total;
  const step = tall ? 12 : Math.min(7, 18 / Math.max(r.attempts.length, 1));
  const height = tall ? Math.max(r.attempts.length * step, step) : 18;
  const words = r.attempts.length ? r.attempts.map(fate).join('; ') : 'no attempt';
  const box = svg('svg', { class: 'waterfall' + (tall ? ' tall' : ''), viewBox: `0 0 1000 ${height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': words });
  if (tall) box.setAttribute('data-rows', Math.min(r.attempts.length, 10));
  box.append(svg('rect', { class: 'ground', x: 0, y: 0, width: 1000, height }));
  r.attempts.forEach((a, i) => {
    const y = tall ? i * step + 1 : r.attempts.length * step <= 18 ? (18 - r.attempts.length * step) / 2 + i * step : i * step;
    const wide = Math.max(x(a.duration_ms), 12);
    const bar = svg('g', { class: tone(a) + (wide < 30 ? ' brief' : '') }, svg('rect', { class: 'whole', x: Math.min(x(a.after_ms), 988), y, width: wide, height: Math.max(step - 1.5, 1) }));
    if (a.first_content_ms && a.outcome === 'answered') bar.append(svg('rect', { class: 'content', x: x(a.after_ms + a.first_content_ms), y, width: Math.max(x(a.duration_ms - a.first_content_ms), 4), height: Math.max(step - 1.5, 1) }));
    const title = svg('title');
    title.textContent = fate(a);
    bar.append(title);
    box.append(bar);
  });
  return box;
}

export function render(live) {
  const odd = $('only-odd').checked;
  const list = (held || live.all('r:'))
    .filter((r) => !odd || r.status >= 400 || r.broke || r.attempts.length > 1)
    .sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : a.id < b.id ? 1 : -1)).slice(0, 40);
  $('requests-table').hidden = !list.length;
  const more = $('requests-all');
  more.hidden = list.length <= few;
  text(more, all ? `Show the last ${few} only` : `Show the last ${list.length}`);
  attr(more, 'aria-expanded', all);
  more.onclick = () => {
    all = !all;
    render(live);
  };
  $('requests-none').hidden = list.length > 0;
  text($('requests-none'), odd && live.all('r:').length ? 'None failed or was switched.' : 'No request yet. The last 1,000 that are over are remembered.');
  text($('requests-count'), held ? 'held still' : '');
  keyed($('requests-table').tBodies[0], all ? list : list.slice(0, few), (r) => r.id + r.at, makeRow, () => {});
}

/** A request that is over changes no more. */
function makeRow(r) {
  const names = r.attempts.map((a) => a.target);
  const lastTarget = names[names.length - 1] || ['no target', r.code].filter(Boolean).join(' · ');
  const failed = r.attempts.filter((a) => tone(a) === 'bad');
  const causes = listed([...new Set(failed.map((a) => cause(a.kind)).filter(Boolean))], 3);
  const calls = failed.length === r.attempts.length ? (failed.length > 1 ? `the last of ${failed.length} failed calls` : 'failed') : failed.length && `after ${plural(failed.length, 'failed call')}`;
  const show = (e) => {
    if (getSelection().isCollapsed) open(r.id, e?.currentTarget.querySelector('button'));
  };
  return h('tr', { tabindex: '-1', onclick: show },
    h('td', {}, h('button', { type: 'button', class: 'link-like', 'aria-label': `Show request ${r.id} of ${clock(r.at)}`, text: clock(r.at) })),
    h('th', { scope: 'row', 'data-name': 'Model' }, h('span', { class: 'clip', text: r.model || '–' }), r.route && r.route !== r.model ? h('span', { class: 'muted small clip', text: ` as ${r.route}` }) : null),
    h('td', { 'data-name': 'Client got' }, statusChip(r)),
    h('td', { class: 'attempts', 'data-name': 'Attempts' }, waterfall(r), h('span', { class: 'small muted clip', text: lastTarget + (r.attempts.length && calls ? ` · ${calls}${causes && ': ' + causes}` : '') })),
    h('td', { class: 'num', 'data-name': 'First token', text: r.first_content_ms ? long(r.first_content_ms) : '–' }),
    h('td', { class: 'num', 'data-name': 'Took', text: long(r.duration_ms) }));
}

const address = (id) => '#request/' + encodeURIComponent(id);

/** Shows a request's whole story. */
export async function open(id, back) {
  const dialog = $('story');
  if (!dialog.open) dialog.back = back || document.activeElement;
  text($('story-title'), `Request ${id}`);
  $('story-body').replaceChildren(h('p', { class: 'muted', text: 'Loading…' }));
  if (!dialog.open) dialog.showModal();
  dialog.shown = id;
  history.replaceState(null, '', address(id));
  try {
    $('story-body').replaceChildren(...story(await api('GET', 'requests/' + encodeURIComponent(id))));
  } catch (err) {
    $('story-body').replaceChildren(h('p', { class: 'problem', role: 'alert', text: err.message }));
  }
}

function story(q) {
  const facts = [
    ['Client got', statusChip(q)], ['Came', clock(q.at)], ['Took', long(q.duration_ms)], ['First token', q.first_content_ms ? long(q.first_content_ms) : '–'],
    ['Asked for', q.model || '–'], ['Stands for', q.route || '–'], ['Call', `${q.method} ${q.path}`], ['Dialect', q.dialect + (q.stream ? ', streamed' : '')],
    ['Error code', q.code], ['Broke', q.broke],
    ['Tokens', q.usage && `${count(q.usage.input)} in, ${count(q.usage.output)} out`],
  ].filter(([, v]) => v);
  const start = Date.parse(q.at);
  const attempts = q.attempts.map((a) => ({ ...a, target: nameOf(a), after_ms: Date.parse(a.at) - start }));
  const out = [h('dl', { class: 'facts wide' }, ...facts.map(([k, v]) => h('div', {}, h('dt', { text: k }), h('dd', {}, v)))), h('h3', { text: 'Attempts' })];
  if (attempts.length) {
    out.push(waterfall({ ...q, attempts }, true), h('div', { class: 'scroll' }, h('table', { class: 'plain' },
      h('caption', { class: 'away', text: 'Attempts in their order' }),
      head('Target', 'Outcome', 'Judged', 'After', 'First token', 'Took'),
      h('tbody', {}, ...attempts.map((a) => h('tr', {},
        h('th', { scope: 'row', text: a.target }),
        h('td', {}, chip({ icon: tone(a) === 'ok' ? 'ok' : tone(a) === 'bad' ? 'bad' : 'hand', tone: tone(a) === 'idle' ? 'hand' : tone(a) }, a.outcome + (a.status ? ` ${a.status}` : '') + (a.probe ? ', probe' : ''))),
        h('td', {}, h('div', { text: a.kind ? `${cause(a.kind)} (${a.scope})` : '–' }), h('div', { class: 'muted small', text: [a.rule && `rule ${a.rule}`, a.evidence].filter(Boolean).join(': ') })),
        h('td', { class: 'num', text: long(Math.max(a.after_ms, 0)) }), h('td', { class: 'num', text: a.first_content_ms ? long(a.first_content_ms) : '–' }), h('td', { class: 'num', text: long(a.duration_ms) })))))));
  } else out.push(h('p', { class: 'empty', text: 'No upstream was called.' }));
  if (q.skipped.length) {
    out.push(h('h3', { text: 'Not tried' }), h('div', { class: 'scroll' }, h('table', { class: 'plain' }, h('caption', { class: 'away', text: 'Targets that were not tried' }), head('Target', 'Because', 'Until'),
      h('tbody', {}, ...q.skipped.map((s) => h('tr', {}, h('th', { scope: 'row', text: nameOf(s) }),
        h('td', {}, h('div', { text: [layers[s.unfit ? 'fit' : s.layer] || s.layer, cause(s.kind)].filter(Boolean).join(': ') }), h('div', { class: 'muted small', text: s.reason || '' })), h('td', { text: s.until ? clock(s.until) : '–' })))))));
  }
  return out;
}

// What kept a target from being tried.
const layers = { breaker: 'breaker open', connection: 'connection cooling', model: 'model locked', operator: 'excluded by an operator', headroom: 'nothing left of its limit', fit: 'could not take it' };

const nameOf = (x) => [x.provider, x.connection, x.model].join('/');
export const head = (...names) => h('thead', {}, h('tr', {}, ...names.map((n) => h('th', { scope: 'col', class: ['After', 'First token', 'Took'].includes(n) ? 'num' : null, text: n }))));
