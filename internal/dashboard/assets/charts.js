// The charts of the last hour. The table below them and their labels say the same in words.
import { $, attr, fill, h, keyed, text } from './dom.js';
import { clock, count, long, share } from './format.js';
import { reach } from './timeline.js';

/* global uPlot */
let seconds = 3600;
const charts = [];

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Lines differ by dash as well as by colour.
const sorts = {
  traffic: [
    { label: 'requests', tone: '--accent', fill: '--accent-soft', width: 1.5, value: (v) => (v == null ? '–' : v.toFixed(1)) },
    { label: 'wasted calls', tone: '--warn', dash: [2, 3], width: 1.5, value: (v) => (v == null ? '–' : v.toFixed(1)) },
    { label: 'failed for clients', tone: '--bad', width: 2.5, value: (v) => (v == null ? '–' : v.toFixed(1)) },
  ],
  first: [
    { label: 'p50', tone: '--accent', width: 1.5, value: (v) => (v == null ? '–' : long(v * 1000)) },
    { label: 'p95', tone: '--warn', dash: [6, 3], width: 1.5, value: (v) => (v == null ? '–' : long(v * 1000)) },
    { label: 'p99', tone: '--bad', dash: [2, 3], width: 1.5, value: (v) => (v == null ? '–' : long(v * 1000)) },
  ],
};

function make(name, box) {
  const axis = { stroke: colour('--muted'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' };
  return new uPlot({
    width: Math.max(box.clientWidth, 120), height: 150, padding: [8, 4, 0, 0],
    cursor: { y: false, drag: { setScale: false }, points: { size: 5 } },
    legend: { live: true, markers: { width: 2 } },
    scales: { x: { range: (u) => [(u.until || Date.now() / 1000) - seconds, u.until || Date.now() / 1000] }, y: { range: (u, min, max) => [0, Math.max(max * 1.1, name === 'first' ? 0.5 : 1) || 1] } },
    axes: [
      { ...axis, space: 60, size: 26, values: (u, ticks) => ticks.map((t) => clock(t * 1000).slice(0, 5)) },
      { ...axis, size: 34, space: 28 },
    ],
    series: [{ value: (u, v) => (v == null ? '–' : clock(v * 1000)) }, ...sorts[name].map((s) => ({
      label: s.label, stroke: colour(s.tone), fill: s.fill && colour(s.fill), dash: s.dash, width: s.width, value: (u, v) => s.value(v),
      points: { show: false }, spanGaps: false,
    }))],
  }, [[], [], [], []], box);
}

class Chart {
  constructor(name) {
    this.name = name;
    this.box = $('chart-' + name);
    this.data = [[], [], [], []];
    this.until = Date.now() / 1000;
    this.build();
    new ResizeObserver(() => {
      const width = Math.max(this.box.clientWidth, 120);
      if (width !== this.plot.width) this.plot.setSize({ width, height: 150 });
    }).observe(this.box);
  }

  build() {
    this.plot?.destroy();
    this.plot = make(this.name, this.box);
    this.show(this.data, this.until);
  }

  show(data, until) {
    this.data = data;
    this.until = this.plot.until = until;
    this.plot.setData(data);
  }
}

/** Makes the charts, and anew when the colours change. */
export function start() {
  charts.push(new Chart('traffic'), new Chart('first'));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => charts.forEach((c) => c.build()));
}

/** Shows the steps of the last hour. */
export function render(live) {
  const steps = live.all('s:').sort((a, b) => (a.at < b.at ? -1 : 1));
  const per = 10;
  const x = steps.map((s) => Date.parse(s.at) / 1000);
  const until = live.now / 1000;
  seconds = reach(live).seconds;
  // The step that runs is not full yet: it would always look like a slump.
  if (x.length && x[x.length - 1] + per > until) {
    x.pop();
    steps.pop();
  }
  charts[0].show([x, steps.map((s) => s.requests / per), steps.map((s) => s.wasted / per), steps.map((s) => s.failed / per)], until);
  const first = (name) => steps.map((s) => (s.first_content ? s.first_content[name] / 1000 : null));
  charts[1].show([x, first('p50_ms'), first('p95_ms'), first('p99_ms')], until);
  describe(live.get('recent'));
  table(steps);
}

function describe(r) {
  if (!r?.requests) return;
  attr($('chart-traffic'), 'aria-label', `Chart of the last hour. In the last five minutes: ${count(r.requests)} requests, ${count(r.failed)} failed for clients (${share(r.failed, r.requests)}), ${count(r.wasted)} of ${count(r.attempts)} upstream calls wasted.`);
  const f = r.first_content;
  if (f) attr($('chart-first'), 'aria-label', `Chart of the last hour. In the last five minutes: half below ${long(f.p50_ms)}, 95% below ${long(f.p95_ms)}, 99% below ${long(f.p99_ms)}.`);
}

function table(steps) {
  const minutes = new Map();
  for (const s of steps) {
    const at = Math.floor(Date.parse(s.at) / 60_000) * 60_000;
    const m = minutes.get(at) || { at, requests: 0, failed: 0, attempts: 0, wasted: 0, p95: 0 };
    for (const k of ['requests', 'failed', 'attempts', 'wasted']) m[k] += s[k];
    m.p95 = Math.max(m.p95, s.first_content?.p95_ms || 0);
    minutes.set(at, m);
  }
  const rows = [...minutes.values()].slice(-10).reverse();
  keyed($('traffic-table').tBodies[0], rows, (m) => m.at, (m) => h('tr', {}, h('th', { scope: 'row', text: clock(m.at).slice(0, 5) }),
    ...['requests', 'failed', 'attempts', 'wasted', 'p95'].map(() => h('td', { class: 'num' }))), (tr, m) => {
    ['requests', 'failed', 'attempts', 'wasted'].forEach((k, i) => text(tr.cells[i + 1], count(m[k])));
    text(tr.cells[5], m.p95 ? long(m.p95) : '–');
  });
}

/** The figures above the charts. */
export function tiles(live) {
  const r = live.get('recent');
  const meta = live.get('meta');
  if (!r || !meta) return;
  const f = r.first_content;
  const rate = r.requests / 300;
  const list = [
    ['Requests', count(r.requests), `${rate < 10 ? rate.toFixed(1) : Math.round(rate)} a second, last 5 min`, ''],
    ['Failed for clients', share(r.failed, r.requests), `${count(r.failed)} of ${count(r.requests)}`, r.failed / r.requests > 0.01 ? 'bad' : ''],
    ['Saved by failover', count(r.recovered), r.recovered ? `${long(r.delay_ms / r.recovered)} later on average` : r.failed ? 'none' : 'none was needed', ''],
    ['Wasted calls', share(r.wasted, r.attempts), `${count(r.wasted)} of ${count(r.attempts)} upstream calls`, ''],
    ['Waiting now', count(meta.waiting), meta.waiting ? 'for a target to come back' : 'nobody', meta.waiting ? 'warn' : ''],
    ['First token', f ? long(f.p50_ms) : '–', f ? `p95 ${long(f.p95_ms)}, p99 ${long(f.p99_ms)}` : 'no answer yet', ''],
  ];
  fill($('tiles'), list, (all) => all.map(([name, value, more, tone]) => h('div', { class: `tile ${tone}` }, h('dt', { text: name }), h('dd', {}, h('b', { text: value }), h('span', { class: 'muted', text: more })))));
}
