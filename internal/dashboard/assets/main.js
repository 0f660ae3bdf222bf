// The page: the live link, and who draws what of it.
import { $, attr, h, text } from './dom.js';
import { cause, clock, look } from './format.js';
import { Live } from './live.js';
import { tick } from './countdown.js';
import * as charts from './charts.js';
import * as explain from './explain.js';
import * as gateway from './gateway.js';
import * as keys from './keys.js';
import * as out from './out.js';
import * as providers from './providers.js';
import * as requests from './requests.js';

const dirty = new Set();
let drawing = 0;

// Which parts of the page are made of which documents.
const parts = {
  out: { of: ['p:', 'c:', 'k:', 'l:', 'o:', 'meta', 'recent'], draw: drawOut },
  providers: { of: ['p:', 'c:', 'o:', 't:'], draw: () => providers.render(live) },
  charts: { of: ['s:', 'recent', 'meta'], draw: () => (charts.render(live), charts.tiles(live)) },
  requests: { of: ['r:'], draw: () => requests.render(live) },
  gateway: { of: ['meta', 'names', 'nodes', 'places', 'headroom'], draw: () => (gateway.render(live), explain.render(live)) },
};

function drawOut() {
  const list = out.outages(live);
  out.renderHeadline(live, list);
  out.renderOut(live, list);
}

/** Draws what has changed, soon. A hidden page draws too: its title tells of outages. */
function soon(...names) {
  names.forEach((n) => dirty.add(n));
  drawing ||= setTimeout(() => {
    drawing = 0;
    if (!live.heard) return;
    for (const name of dirty) parts[name].draw();
    dirty.clear();
    tick(live);
  }, 30);
}

const live = new Live(document.querySelector('meta[name=assets]').content, {
  onchange(m) {
    const keys = [...Object.keys(m.set || {}), ...(m.del || [])];
    for (const [name, part] of Object.entries(parts)) {
      if (m.full || keys.some((k) => part.of.some((p) => k.startsWith(p)))) soon(name);
    }
    if (!m.full) tell(Object.keys(m.set || {}));
    else remember();
  },
  onstate(state) {
    attr(document.body, 'data-link', state);
    text($('link-text'), { live: 'live', lost: 'connection lost', connecting: 'connecting', 'signed-out': 'signed out' }[state]);
    const lost = $('lost');
    lost.hidden = state === 'live' || state === 'connecting';
    if (state === 'lost') lost.replaceChildren(`Connection to the gateway lost. Showing the data of ${clock(live.heard)}. Trying again…`);
    if (state === 'signed-out') lost.replaceChildren('You are signed out. ', h('a', { href: '/dashboard', text: 'Sign in again' }), live.heard ? ` What you see is of ${clock(live.heard)}.` : '');
    tick(live);
  },
  onold() {
    if (!document.querySelector('dialog[open]')) location.reload();
  },
});

// What those who hear the page are told: combos without a target, the changes of breakers, and connections that need
// somebody.
const before = new Map();
const news = [];
const stateOf = (key, doc) => ({ k: doc.available, p: doc.breaker?.state })[key[0]] ?? doc.state;

function remember() {
  before.clear();
  for (const [key, doc] of live.docs) if (/^[pck]:/.test(key)) before.set(key, stateOf(key, doc));
}

function tell(changed) {
  for (const key of changed) {
    const doc = live.get(key);
    if (!/^[pck]:/.test(key) || !doc || before.get(key) === stateOf(key, doc)) continue;
    before.set(key, stateOf(key, doc));
    if (key[0] === 'k') news.push(doc.available ? `${doc.id} has a target again` : `no target is left for ${doc.id}`);
    else if (key[0] === 'p') news.push(`${doc.id}: breaker ${look(doc.breaker.state).words}${doc.breaker.kind && doc.breaker.state !== 'CLOSED' ? ', ' + cause(doc.breaker.kind) : ''}`);
    else if (doc.state === 'quarantined') news.push(`${doc.provider} ${doc.id} needs a person: ${cause(doc.kind)}`);
  }
}

setInterval(() => {
  if (!news.length) return;
  text($('announce'), news.length > 4 ? `${news.length} changes, the last: ${news[news.length - 1]}` : news.join('. '));
  news.length = 0;
}, 3000);

setInterval(() => {
  tick(live);
  text($('link-text'), live.state === 'live' ? `live ${clock(live.now)}` : $('link-text').textContent);
}, 500);
setInterval(() => live.state === 'live' && soon('providers', 'charts'), 10_000); // what moves by time alone

charts.start();
keys.start();
explain.start();
providers.start(() => soon('providers'));
requests.start(() => soon('requests'), live);
