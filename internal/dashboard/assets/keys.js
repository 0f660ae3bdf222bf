// The keyboard, and the legend.
import { $, chip, h } from './dom.js';
import { look } from './format.js';

const legend = [
  ['CLOSED', 'a provider that works: requests pass'],
  ['DEGRADED', 'failures in a row, not yet enough to open'],
  ['OPEN', 'nothing is sent but single probes'],
  ['HALF_OPEN', 'one probe decides whether the provider is back'],
  ['ready', 'a connection that may be used'],
  ['cooling', 'out for some time; the level makes the next time longer'],
  ['probing', 'its time is over, one request tries it'],
  ['quarantined', 'a key revoked, an account closed, credit gone: change the key, or pay, then reset'],
  ['excluded', 'taken out by hand, until its time is over or somebody ends it'],
  ['locked', 'one model on one connection is out; the others are well'],
];

export function start() {
  $('legend').append(...legend.map(([state, words]) => h('p', {}, chip(look(state)), h('span', { text: words }))),
    h('p', { class: 'muted', text: 'Strips: the last hour, left to right; the worse the state, the higher it stands. A thin line is well. Waterfalls: each bar is a call; hatched failed, the full part is content that came.' }));
  const help = $('help');
  $('help-open').addEventListener('click', () => help.showModal());
  $('help-close').addEventListener('click', () => help.close());
  $('keys-on').checked = localStorage.getItem('keys') !== 'off';
  $('keys-on').addEventListener('input', () => localStorage.setItem('keys', $('keys-on').checked ? 'on' : 'off'));
  addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.altKey || e.metaKey || !$('keys-on').checked || document.querySelector('dialog[open]')) return;
    if (e.target.closest('input:not([type=checkbox]), select, textarea')) {
      if (e.key === 'Escape') e.target.blur();
      return;
    }
    const act = keys[e.key];
    if (!act) return;
    e.preventDefault();
    act();
  });
}

const go = (id) => {
  $(id).scrollIntoView({ block: 'start' });
  $(id).focus({ preventScroll: true });
};

const keys = {
  '/': () => go('filter'),
  o: () => $('only-out').click(),
  g: () => go('out-title'),
  r: () => go('requests-title'),
  p: () => $('pause').click(),
  e: () => go('explain-model'),
  '?': () => $('help').showModal(),
  j: () => row(1),
  k: () => row(-1),
};

/** Moves the focus to the next row of the tables, or the previous. */
function row(step) {
  const rows = [...document.querySelectorAll('table.rows tr[tabindex]')].filter((tr) => tr.offsetParent);
  const at = rows.findIndex((tr) => tr.contains(document.activeElement));
  const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
}

addEventListener('keydown', (e) => {
  if (e.key === 'Enter' && e.target.matches?.('.requests tr')) e.target.querySelector('button').click();
});
