// Times that run down. While the link is lost they claim nothing.
import { attr, h, text } from './dom.js';
import { clock, left } from './format.js';

/** An element that counts down to a time. */
export const countdown = () => h('span', { class: 'count' });

/** Says until when: a time, or words where there is none. */
export function until(el, at, without = '') {
  el.at = at ? Date.parse(at) : 0;
  el.without = without;
}

/** Brings every countdown up to the moment. */
export function tick(live, root = document) {
  const now = live.now;
  for (const el of root.querySelectorAll('.count')) {
    if (!el.at) {
      text(el, el.without || '');
      attr(el, 'title', null);
      continue;
    }
    const ms = el.at - now;
    if (live.state !== 'live') text(el, `was to be ${clock(el.at, now)}`);
    else text(el, ms > 0 ? `in ${left(ms)}` : 'any moment');
    attr(el, 'title', `until ${clock(el.at, now)}`);
  }
}
