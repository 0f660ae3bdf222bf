// The strip of a provider's or connection's states over the last minutes, an hour at most.
import { fill, svg } from './dom.js';
import { clock, long, look } from './format.js';

let span = 3600_000;
const height = 18;
// The worse the state the higher it stands, so that the strip can be read without colours.
const heights = { CLOSED: 3, ready: 3, DEGRADED: 8, probing: 8, HALF_OPEN: 12, cooling: 12, excluded: 12, OPEN: 18, quarantined: 18 };
const tones = (state) => look(state).tone;

const spans = [10, 30, 60];

/** Sets how far back strips and charts reach: a gateway that has just begun is not shown as an hour of nothing. */
export function reach(live) {
  const first = [...live.all('s:').map((s) => s.at), ...live.all('t:').map((t) => t.states[0].at)].sort()[0];
  const minutes = spans.find((m) => !first || Date.parse(first) > live.now - m * 60_000) || 60;
  span = minutes * 60_000;
  return { seconds: minutes * 60, words: minutes === 60 ? 'last hour' : `last ${minutes} min` };
}

/** The states of one line, as stretches that end by themselves or by the next. */
function stretches(line, now) {
  const out = [];
  const states = line?.states || [];
  states.forEach((s, i) => {
    const from = Date.parse(s.at);
    const next = i + 1 < states.length ? Date.parse(states[i + 1].at) : now;
    // A breaker stays open until somebody probes it; a connection is free when its time is over.
    const end = s.until && line.layer !== 'breaker' ? Math.min(next, Date.parse(s.until)) : next;
    if (end > now - span && s.state !== 'CLOSED' && s.state !== 'ready') {
      out.push({ state: s.state, kind: s.kind, from: Math.max(from, now - span), to: Math.min(Math.max(end, from), now) });
    }
  });
  return out;
}

/** Draws lines over each other into el. name is for those who hear the page. */
export function draw(el, name, lines, now) {
  const parts = lines.filter(Boolean).flatMap((line) => stretches(line, now));
  const step = Math.round(now / 5000) * 5000; // not anew each second
  fill(el, [span, parts.map((p) => [p.state, Math.round(p.from / 1000), p.to >= now - 1000 ? 'now' : Math.round(p.to / 1000)]), parts.length ? step : 0], () => {
    const x = (t) => ((t - (now - span)) / span) * 3600;
    const strip = svg('svg', { class: 'strip', viewBox: `0 0 3600 ${height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': summary(name, parts) });
    strip.append(svg('rect', { class: 'base', x: 0, y: height - 3, width: 3600, height: 3 }));
    for (const t of [720, 1440, 2160, 2880]) strip.append(svg('rect', { class: 'mark', x: t - 4, y: height - 6, width: 8, height: 6 }));
    for (const p of parts) {
      const tall = heights[p.state] || 8;
      const wide = Math.max(x(p.to) - x(p.from), 30); // or a second's outage could not be seen
      const rect = svg('rect', { class: tones(p.state), x: Math.min(x(p.from), 3600 - wide), y: height - tall, width: wide, height: tall });
      const why = p.kind && p.kind !== 'unknown' ? `, ${p.kind}` : '';
      const title = svg('title');
      title.textContent = `${look(p.state).words}${why}, ${clock(p.from, now)}, ${long(p.to - p.from)}`;
      rect.append(title);
      strip.append(rect);
    }
    return strip;
  });
}

function summary(name, parts) {
  if (!parts.length) return `${name}: well all the time`;
  const sums = new Map();
  for (const p of parts) {
    const s = sums.get(p.state) || { n: 0, ms: 0 };
    sums.set(p.state, { n: s.n + 1, ms: s.ms + p.to - p.from });
  }
  return `${name}, ${Math.round(span / 60_000)} minutes: ` + [...sums].map(([state, s]) => `${look(state).words} ${s.n === 1 ? 'once' : s.n + ' times'}, ${long(s.ms)}`).join('; ');
}
