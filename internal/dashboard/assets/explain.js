// What would become of a request.
import { $, chip, fill, h } from './dom.js';
import { cause, left, nameOf } from './format.js';
import { api } from './actions.js';
import { head } from './requests.js';

export function start() {
  $('explain-form').addEventListener('submit', (e) => {
    e.preventDefault();
    explain($('explain-model').value.trim());
  });
}

async function explain(model) {
  const box = $('explain-answer');
  if (!model) return;
  try {
    box.replaceChildren(...answer(model, await api('POST', 'explain', { model })));
  } catch (err) {
    box.replaceChildren(h('p', { class: 'problem', role: 'alert', text: err.message }));
  }
}

/** Goes to the form and asks it about a name. */
export function ask(model) {
  $('explain-model').value = model;
  $('explain-title').focus();
  $('explain').scrollIntoView();
  explain(model);
}

/** Offers the names of the configuration. */
export function render(live) {
  fill($('names'), live.get('names') || [], (list) => list.map((name) => h('option', { value: name })));
}

function answer(model, x) {
  const first = x.candidates.find((c) => c.eligible);
  const verdict = first ? `A request for ${model} would go to ${nameOf(first)}.` : x.candidates.length ? `A request for ${model} would find nothing in service now.` : 'No connection of it has a key, so that a request is answered 503 no_connection.';
  const out = [h('p', {}, h('b', { text: verdict }), x.route !== model ? h('span', { class: 'muted', text: ` It stands for ${x.route}.` }) : null)];
  if (!x.candidates.length) return out;
  out.push(h('div', { class: 'scroll' }, h('table', { class: 'plain' }, h('caption', { class: 'away', text: `Candidates for ${model}` }), head('#', 'Target', 'Tried', 'Why'),
    h('tbody', {}, ...x.candidates.map((c, i) => h('tr', {}, h('td', { text: String(i + 1) }), h('th', { scope: 'row', text: nameOf(c) }),
      h('td', {}, c.eligible ? chip({ icon: 'ok', tone: 'ok' }, 'yes') : chip({ icon: 'bad', tone: 'bad' }, 'no' + (c.retry_after_ms ? `, in ${left(c.retry_after_ms)}` : ''))),
      h('td', {}, [cause(c.kind), c.reason].filter(Boolean).join(': '))))))));
  return out;
}
