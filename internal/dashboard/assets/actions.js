// What an operator does: reset, exclude, end an exclusion. Each asks first.
import { $, text } from './dom.js';
import { nameOf, plural } from './format.js';

const csrf = document.querySelector('meta[name=csrf]').content;

/** Asks the admin API. An error is thrown with its own words. */
export async function api(method, call, body) {
  const init = { method, cache: 'no-store' };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { 'Content-Type': 'application/json', 'X-Omniroute-Csrf': csrf };
  }
  let answer, doc;
  try {
    answer = await fetch('/dashboard/api/' + call, init);
    doc = await answer.json();
  } catch {
    throw new Error('The gateway does not answer. Try again when the link is back.');
  }
  if (!answer.ok) throw new Error(doc.error?.message || `The gateway says ${answer.status}.`);
  return doc;
}

/** Asks whether to go on. go returns what to tell when it is done: words, or {words, undo}. */
function ask({ title, words, yes, exclude = false, go }) {
  const dialog = $('ask');
  text($('ask-title'), title);
  text($('ask-text'), words);
  text($('ask-yes'), yes);
  $('ask-exclude').hidden = !exclude;
  $('ask-problem').hidden = true;
  const back = document.activeElement;
  dialog.querySelector('form').onsubmit = async (e) => {
    e.preventDefault();
    $('ask-yes').disabled = true;
    try {
      const done = await go();
      dialog.close();
      toast(done.words ?? done, done.undo);
    } catch (err) {
      text($('ask-problem'), err.message);
      $('ask-problem').hidden = false;
    }
    $('ask-yes').disabled = false;
  };
  $('ask-no').onclick = () => dialog.close();
  dialog.onclose = () => back?.isConnected && back.focus({ preventScroll: true });
  dialog.showModal();
  (exclude ? $('ask-for') : $('ask-yes')).focus();
}

let hiding = 0;

/** Tells what was done, and how to take it back. */
export function toast(words, undo) {
  text($('toast-text'), words);
  text($('announce'), words); // what appears and speaks at once is not always heard
  $('toast-undo').hidden = !undo;
  $('toast-undo').onclick = async () => {
    try {
      toast(await undo());
    } catch (err) {
      toast(err.message);
    }
  };
  $('toast').hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => ($('toast').hidden = true), undo ? 20_000 : 8_000);
}

const keyOf = (x) => Object.fromEntries(['provider', 'connection', 'model'].filter((k) => x[k]).map((k) => [k, x[k]]));

const included = async (x) => {
  await api('DELETE', 'exclude', keyOf(x));
  return `The exclusion of ${nameOf(x)} has ended.`;
};

/** Asks to take something back into service. */
export function reset(x) {
  const scope = x.model ? 'model' : x.connection ? 'connection' : 'provider';
  const below = { provider: ' with its connections and models', connection: ' with its models', model: '' }[scope];
  ask({
    title: `Reset ${nameOf(x)}?`,
    words: `It goes back into service at once${below}: counts, levels and times are forgotten. What is still broken will be taken out again by its failures. An operator's exclusion stays.`,
    yes: 'Reset',
    go: async () => {
      const n = await api('POST', 'reset', { scope, ...keyOf(x) });
      const parts = [[n.breakers, 'breaker'], [n.connections, 'connection'], [n.lockouts, 'model lockout']].filter(([k]) => k).map(([k, one]) => plural(k, one));
      return parts.length ? `Back in service: ${parts.join(', ')}.` : `Nothing of ${nameOf(x)} was out of service.`;
    },
  });
}

/** Asks to take something out of service. */
export function exclude(x) {
  ask({
    title: `Exclude ${nameOf(x)}?`,
    words: 'No request is sent there until the time is over or somebody ends it. Requests that run are not touched.',
    yes: 'Exclude',
    exclude: true,
    go: async () => {
      const body = { ...keyOf(x), reason: $('ask-reason').value.trim() || 'excluded at the dashboard' };
      if ($('ask-for').value) body.for = $('ask-for').value;
      await api('POST', 'exclude', body);
      const time = $('ask-for').selectedOptions[0].textContent;
      return { words: `${nameOf(x)} is out ${body.for ? 'for ' : ''}${time}.`, undo: () => included(x) };
    },
  });
}

/** Asks to end an operator's exclusion. */
export function include(x) {
  ask({ title: `End the exclusion of ${nameOf(x)}?`, words: 'Requests are sent there again at once.', yes: 'End exclusion', go: () => included(x) });
}
