// The live link: documents by key, kept as the gateway has them.

const silence = 12_000; // without a word for so long the link is dead; the gateway speaks every 5 s
const pauses = [300, 600, 1200, 2500, 5000];

export class Live {
  /** The documents: "p:acme" is a provider, "c:acme/main" a connection, "r:…" a request, and so on. */
  docs = new Map();
  /** connecting, live, lost or signed-out */
  state = 'connecting';
  /** When the last word came, by the gateway's clock; 0 before the first. */
  heard = 0;

  #offset = 0; // gateway's clock minus ours
  #tries = 0;
  #source = null;
  #timer = 0;

  constructor(assets, { onchange, onstate, onold }) {
    this.assets = assets;
    Object.assign(this, { onchange, onstate, onold });
    addEventListener('online', () => this.#again(0));
    addEventListener('pagehide', () => this.#source?.close());
    addEventListener('pageshow', (e) => e.persisted && this.#again(0));
    this.#connect();
  }

  /** The gateway's time, while the link lives; else when it was last heard. */
  get now() {
    return this.state === 'live' ? Date.now() + this.#offset : this.heard;
  }

  /** All documents whose key begins so. */
  all(prefix) {
    const out = [];
    for (const [key, doc] of this.docs) if (key.startsWith(prefix)) out.push(doc);
    return out;
  }

  get(key) {
    return this.docs.get(key);
  }

  #connect() {
    const source = this.#source = new EventSource('/dashboard/stream');
    const on = (name, f) => source.addEventListener(name, (e) => {
      if (source !== this.#source) return;
      this.#watch();
      f(JSON.parse(e.data));
    });
    on('hello', (m) => {
      if (!this.assets.endsWith(m.assets)) this.onold();
    });
    on('view', (m) => this.#take(m));
    on('alive', (m) => this.#hear(m.now));
    on('bye', (m) => (m.why === 'signed_out' ? this.#end('signed-out') : this.#drop()));
    source.onerror = () => source === this.#source && this.#drop();
    this.#watch();
  }

  #watch() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#drop(), silence);
  }

  #hear(now) {
    this.heard = Date.parse(now);
    this.#offset = this.heard - Date.now();
    this.#tries = 0;
    this.#set('live');
  }

  #take(m) {
    this.#hear(m.now);
    if (m.full) this.docs.clear();
    for (const [key, doc] of Object.entries(m.set || {})) this.docs.set(key, doc);
    for (const key of m.del || []) this.docs.delete(key);
    this.onchange(m);
  }

  #set(state) {
    if (this.state === state) return;
    this.state = state;
    this.onstate(state);
  }

  #end(state) {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
    this.#set(state);
  }

  #drop() {
    this.#end(this.heard ? 'lost' : 'connecting');
    this.#again(pauses[Math.min(this.#tries++, pauses.length - 1)] * (0.8 + 0.4 * Math.random()));
  }

  #again(ms) {
    if (this.#source || this.state === 'signed-out') return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(async () => {
      // An EventSource cannot tell why it is refused.
      try {
        const r = await fetch('/dashboard/stream', { method: 'HEAD', cache: 'no-store' });
        if (r.status === 401 || r.status === 403) return this.#end('signed-out');
        if (!r.ok) return this.#drop();
      } catch {
        return this.#drop();
      }
      if (!this.#source) this.#connect();
    }, ms);
  }
}
