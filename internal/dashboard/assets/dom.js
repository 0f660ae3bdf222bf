// Elements without markup from strings: what providers and clients wrote only ever becomes text.

/** Makes an element. Properties are attributes, but for `on…` handlers and `text`. */
export function h(tag, props = {}, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'text') el.textContent = value;
    else if (name.startsWith('on')) el.addEventListener(name.slice(2), value);
    else el.setAttribute(name, value === true ? '' : value);
  }
  el.append(...children.filter((c) => c !== null && c !== undefined));
  return el;
}

export const $ = (id) => document.getElementById(id);

/** Sets a text if it is another: an unchanged page keeps its selection. */
export function text(el, value) {
  if (el.textContent !== value) el.textContent = value;
}

export function attr(el, name, value) {
  if (value === null || value === false) {
    if (el.hasAttribute(name)) el.removeAttribute(name);
  } else if (el.getAttribute(name) !== String(value)) el.setAttribute(name, value);
}

/** Replaces the children of el, unless what they are made of is what it was. */
export function fill(el, data, make) {
  const now = JSON.stringify(data);
  if (el.madeOf === now) return;
  el.madeOf = now;
  el.replaceChildren(...[make(data)].flat().filter(Boolean));
}

/**
 * Makes the children of parent those of items, in their order: one element a key, made once by
 * make(item) and brought up to date by update(element, item). The row that has the focus is never
 * moved, since moving takes the focus away: the others move around it. Children of parent that are not
 * of items stay before them.
 */
export function keyed(parent, items, key, make, update) {
  const rows = parent.rowsByKey ||= new Map();
  const wanted = [];
  const seen = new Set();
  for (const item of items) {
    const k = key(item);
    if (seen.has(k)) continue;
    seen.add(k);
    let row = rows.get(k);
    if (!row) rows.set(k, row = make(item));
    update(row, item);
    wanted.push(row);
  }
  for (const [k, row] of rows) {
    if (seen.has(k)) continue;
    if (row.contains(document.activeElement)) keepFocus(row, wanted);
    row.remove();
    rows.delete(k);
  }
  const anchor = Math.max(wanted.findIndex((row) => row.parentNode === parent && row.contains(document.activeElement)), 0);
  if (wanted.length && wanted[anchor].parentNode !== parent) parent.append(wanted[anchor]);
  for (let i = anchor - 1; i >= 0; i--) {
    if (wanted[i].nextSibling !== wanted[i + 1]) parent.insertBefore(wanted[i], wanted[i + 1]);
  }
  for (let i = anchor + 1; i < wanted.length; i++) {
    if (wanted[i - 1].nextSibling !== wanted[i]) parent.insertBefore(wanted[i], wanted[i - 1].nextSibling);
  }
}

/** Moves the focus from a row that goes away to the nearest that stays, or to the section's title. */
function keepFocus(row, wanted) {
  for (let near = row.nextElementSibling || row.previousElementSibling; near; near = near.nextElementSibling) {
    if (!wanted.includes(near)) continue;
    const target = near.querySelector('button, a, input') || near;
    target.focus({ preventScroll: true });
    return;
  }
  row.closest('section')?.querySelector('h2')?.focus({ preventScroll: true });
}

const svgSpace = 'http://www.w3.org/2000/svg';

export function svg(tag, props = {}, ...children) {
  const el = document.createElementNS(svgSpace, tag);
  for (const [name, value] of Object.entries(props)) el.setAttribute(name, value);
  el.append(...children);
  return el;
}

// Each state has a shape of its own, so that no colour is needed to tell them apart.
const shapes = {
  ok: ['M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z', 'M4.7 8.3l2.3 2.3 4.3-5'],
  warn: ['M8 1.3 15.4 14.6H.6Z', 'M8 6v4M8 12.2v.3'],
  bad: ['M5 1h6l4 4v6l-4 4H5l-4-4V5Z', 'M5.5 5.5l5 5M10.5 5.5l-5 5'],
  cool: ['M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z', 'M8 4.3V8l2.7 1.8'],
  probe: ['M8 1 15 8 8 15 1 8Z', 'M5.6 8h4.8M8.6 6l2 2-2 2'],
  person: ['M2 1h12a1 1 0 0 1 1 1v12a1 1 0 0 1-1 1H2a1 1 0 0 1-1-1V2a1 1 0 0 1 1-1Z', 'M8 4.2v.1a1.3 1.3 0 1 1-.1 0M4.6 12c.3-2 1.6-3 3.4-3s3.1 1 3.4 3'],
  hand: ['M2 1h12a1 1 0 0 1 1 1v12a1 1 0 0 1-1 1H2a1 1 0 0 1-1-1V2a1 1 0 0 1 1-1Z', 'M6 5v6M10 5v6'],
  lock: ['M3 7h1.5V5a3.5 3.5 0 0 1 7 0v2H13v8H3ZM6.3 7h3.4V5a1.7 1.7 0 0 0-3.4 0Z', 'M8 10v2'],
};

/** A picture of a state. The words beside it say the same. */
export function icon(name) {
  const [body, mark] = shapes[name] || shapes.ok;
  return svg('svg', { class: 'icon', viewBox: '0 0 16 16', 'aria-hidden': 'true', focusable: 'false' },
    svg('path', { class: 'body', d: body }), svg('path', { class: 'mark', d: mark }));
}

/** A state as picture, colour and words. */
export function chip(look, words) {
  return h('span', { class: `chip ${look.tone}` }, icon(look.icon), h('span', { text: words ?? look.words }));
}
