(() => {
  const out = [];
  const all = (s) => [...document.querySelectorAll(s)].filter((e) => e.checkVisibility({ visibilityProperty: true }));
  const show = (e) => e.outerHTML.replace(/\s+/g, ' ').slice(0, 120);
  const open = document.querySelector('dialog[open]');
  const inScope = (e) => !open || open.contains(e);

  // Names.
  const name = (e) => (e.ariaLabel || (e.getAttribute('aria-labelledby') || '').split(' ').map((id) => document.getElementById(id)?.textContent || '').join(' ')
    || [...(e.labels || [])].map((l) => l.textContent).join(' ') || e.textContent || e.title || '').trim();
  for (const e of all('button, a[href], input:not([type=hidden]), select, meter, [role=img], dialog[open], section, nav')) {
    if (!name(e)) out.push('has no name: ' + show(e));
  }
  for (const e of all('input:not([type=hidden]), select')) if (!e.labels.length && !e.ariaLabel) out.push('has no label: ' + show(e));
  for (const e of all('svg')) if (e.getAttribute('role') !== 'img' && e.getAttribute('aria-hidden') !== 'true') out.push('neither picture nor hidden: ' + show(e));

  // Structure.
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  for (const id of new Set(ids)) if (ids.filter((x) => x === id).length > 1) out.push('id is doubled: ' + id);
  for (const e of document.querySelectorAll('[aria-labelledby], [aria-describedby]')) {
    for (const id of (e.getAttribute('aria-labelledby') || e.getAttribute('aria-describedby')).split(' ')) if (!document.getElementById(id)) out.push('points to nothing: ' + show(e));
  }
  let level = 0;
  for (const e of all('h1, h2, h3, h4').filter((e) => !e.closest('dialog'))) {
    const n = Number(e.tagName[1]);
    if (n > level + 1) out.push('a heading skips a level: ' + show(e));
    level = n;
  }
  if (all('main').length !== 1) out.push('there is not one main part');
  if (all('h1').length !== 1) out.push('there is not one h1');
  if (!document.documentElement.lang) out.push('the language is not told');
  for (const t of all('table').filter((t) => !t.closest('[role=img]'))) {
    if (!t.querySelector('thead th[scope]')) out.push('a table has no head: ' + show(t));
    if (!t.caption && !t.getAttribute('aria-labelledby')) out.push('a table has no name: ' + show(t));
    const wide = t.tHead ? t.tHead.rows[0].cells.length : 0;
    for (const tr of t.querySelectorAll('tbody tr')) if (tr.cells.length !== wide) out.push(`a row has ${tr.cells.length} cells of ${wide}: ` + show(tr));
  }
  for (const e of all('[tabindex]')) if (e.tabIndex > 0) out.push('jumps the queue: ' + show(e));
  for (const e of all('button, a[href]')) if (e.closest('[aria-hidden=true]')) out.push('can be reached but not heard: ' + show(e));

  // Contrast, as WCAG computes it.
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (c) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = c;
    canvas.fillRect(0, 0, 1, 1);
    const d = canvas.getImageData(0, 0, 1, 1).data;
    return [d[0], d[1], d[2], d[3] / 255];
  };
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const light = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const ground = (e) => {
    const layers = [];
    for (let n = e; n; n = n.parentElement) {
      layers.push(rgba(getComputedStyle(n).backgroundColor));
      if (layers[layers.length - 1][3] === 1) break;
    }
    return layers.reverse().reduce((below, c) => over(c, below), rgba('white'));
  };
  const told = new Set();
  for (const e of all('body *').filter(inScope)) {
    if (e.closest('.away, svg, option') || e.disabled) continue;
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    const s = getComputedStyle(e);
    const size = parseFloat(s.fontSize);
    const need = size >= 24 || (size >= 18.66 && Number(s.fontWeight) >= 700) ? 3 : 4.5;
    const got = ratio(rgba(s.color), ground(e));
    const key = s.color + need + e.className;
    if (got < need && !told.has(key)) {
      told.add(key);
      out.push(`contrast ${got.toFixed(2)} of ${need}: ` + show(e));
    }
  }
  // What tells a state without words must stand out too.
  for (const e of all('.icon .body, .strip rect:not(.base):not(.mark)').filter(inScope)) {
    const got = ratio(rgba(getComputedStyle(e).fill), ground(e.closest('svg')));
    if (got < 3) out.push(`contrast ${got.toFixed(2)} of 3: ` + show(e.closest('svg')));
  }
  return out;
})()
