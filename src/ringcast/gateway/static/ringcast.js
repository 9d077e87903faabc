/**
 * Ringcast in a browser: sessions, tags, publishers, subscribers, histories and watches, through `ringcast gateway`.
 *
 *     import { connect } from "/ringcast/ringcast.js";
 *     const session = await connect();
 *     for await (const msg of session.tag("lab/temperature").subscribe()) console.log(msg.seq, msg.data, msg.lost);
 *
 * No dependencies and no build step; `ringcast.d.ts` has the types. The names are those of the Python API. A session
 * connects again by itself when the network was away, and everything that it gave out goes on; what could not be
 * received meanwhile is in `lost`.
 */

import { codecs } from "./codecs.js";
import { MESSAGE, PULLED, SENT, TAKEN, TAKEN_BYTES, WRAP } from "./frames.js";
import { History } from "./history.js";
import { Message } from "./message.js";
import { Publisher } from "./publisher.js";
import { Subscriber } from "./subscriber.js";
import { RingcastError, closed, now, native, snake } from "./values.js";
import { Watch } from "./watch.js";

export { codecs, RingcastError, Message, Subscriber, Publisher, History, Watch };

const VERSION = 1;
const LOOK_MS = 250;
const SILENT_BEATS = 4; // so many beats of the gateway missing, and the connection is dead
const ATTEMPT_MS = 1000, MOST_ATTEMPT_MS = 8000, SHORT_ATTEMPTS = 8;
const SOURCES = 2048; // the gateway remembers half as many

/**
 * Open a session with a gateway: by default the one that this module came from.
 * Rejects with a RingcastError after `timeoutMs` without one.
 */
export async function connect(url = undefined, { timeoutMs = 10000 } = {}) {
  const session = new Session(url ?? defaultUrl());
  await session._begin(timeoutMs);
  return session;
}

function defaultUrl() {
  const url = new URL("socket", import.meta.url);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url.href;
}

/** Made by `connect`. Fires "change" events; `detail` is "connected", "lost" or "back". */
export class Session extends EventTarget {
  #url;
  #socket = null;
  #token = "";
  #node = "";
  #ids = 0;
  #numbers = 0;
  #life = 0; // counts how often the gateway began anew, without what this session held
  #connected = false;
  #ever = false;
  #closed = false;
  #heard = 0;
  #looked = 0;
  #deadMs = 2000;
  #attempts = 0;
  #timer = null;
  #attemptTimer = null;
  #pending = new Map();
  #sources = new Map();
  #tags = new Map();
  #subscribers = new Map();
  #publishers = new Map();
  #watches = new Map();
  #begun = null;
  #beat = () => this.#look();
  #hurry = () => this.#retrySoon();

  constructor(url) {
    super();
    this.#url = url;
  }

  /** The name of the gateway's node. */
  get node() { return this.#node; }
  /** False while the gateway cannot be reached. */
  get connected() { return this.#connected; }
  get closed() { return this.#closed; }
  /** True when this page sent more than the gateway's limits allow, and is read more slowly for that. */
  held = false;

  /** Create the tag, or join it as it is; options as in Python, in camelCase or with underscores. */
  tag(name, options = {}) {
    return new Tag(this, name, options);
  }

  /** A subscription to all tags that match, or to one. */
  subscribe(pattern, options = {}) {
    return pattern.includes("*") ? new Subscriber(this, pattern, options, null) : this.tag(pattern).subscribe(options);
  }

  /** A publisher on a tag: `session.tag(name, options).publisher()`. */
  publisher(name, options = {}) {
    const { onSlow, ...rest } = options;
    return this.tag(name, rest).publisher(onSlow === undefined ? {} : { onSlow });
  }

  /** The tags that match, with counters. */
  async tags(pattern = "**") { return native((await this._ask("list", { what: "tags", pattern })).rows); }
  async nodes() { return native((await this._ask("list", { what: "nodes" })).rows); }
  async channels() { return native((await this._ask("list", { what: "channels" })).rows); }

  /** Nodes, publishers and subscribers as they come and go: first those that are there. */
  watch(pattern = "**", { kinds = ["node", "publisher", "subscriber"] } = {}) {
    return new Watch(this, pattern, kinds);
  }

  /** Call `callback` with "connected" or "lost" at once, and with "lost" and "back" as that changes. */
  onConnectionChange(callback) {
    const listener = (event) => callback(event.detail);
    this.addEventListener("change", listener);
    callback(this.#connected ? "connected" : "lost");
    return { close: () => this.removeEventListener("change", listener) };
  }

  /** Close everything that this session gave out. */
  close() {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#timer);
    clearTimeout(this.#attemptTimer);
    globalThis.removeEventListener?.("online", this.#hurry);
    for (const thing of [...this.#subscribers.values(), ...this.#publishers.values(), ...this.#watches.values()]) thing._end(closed("session"));
    for (const waiting of this.#pending.values()) waiting.reject(closed("session"));
    this.#pending.clear();
    this.#drop(1000);
    this.#connected = false;
  }

  // ---------------------------------------------------------------- the connection

  _begin(timeoutMs) {
    this.#timer = setInterval(this.#beat, LOOK_MS);
    globalThis.addEventListener?.("online", this.#hurry);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#giveUp(`no gateway answers at ${this.#url} (${timeoutMs} ms)`), timeoutMs);
      this.#begun = {
        resolve: () => { clearTimeout(timer); this.#begun = null; resolve(); },
        reject: (error) => { clearTimeout(timer); this.#begun = null; this.close(); reject(error); },
      };
      this.#attempt();
    });
  }

  #giveUp(reason) {
    this.#begun?.reject(new RingcastError("GatewayUnavailable", `${reason}; start one with 'ringcast gateway'`));
  }

  #attempt() {
    if (this.#closed) return;
    this.#attempts += 1;
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      const received = Object.fromEntries([...this.#subscribers].map(([number, one]) => [number, one._received % WRAP]));
      socket.send(JSON.stringify({ op: "hello", id: ++this.#ids, version: VERSION, token: this.#token, received }));
    };
    socket.onmessage = (event) => {
      this.#heard = now();
      typeof event.data === "string" ? this.#hear(JSON.parse(event.data)) : this.#receive(event.data);
    };
    socket.onclose = (event) => this.#broken(event.reason);
    // Browsers slow down sockets that failed often; then an attempt takes longer before it begins.
    const patience = this.#attempts <= SHORT_ATTEMPTS ? ATTEMPT_MS : MOST_ATTEMPT_MS;
    this.#attemptTimer = setTimeout(() => this.#broken(""), patience);
  }

  #retrySoon() {
    if (this.#connected || this.#closed) return;
    this.#attempts = 0;
    this.#broken("");
  }

  /** Forget the socket. One that is abandoned is closed with a code that does not mean goodbye. */
  #drop(code) {
    clearTimeout(this.#attemptTimer);
    const socket = this.#socket;
    this.#socket = null;
    if (socket === null) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    try { socket.close(code); } catch { /* it never opened */ }
  }

  #broken(reason) {
    this.#drop(4000);
    if (this.#closed) return;
    if (this.#connected) {
      this.#connected = false;
      this.#attempts = 0;
      this.#fire("lost");
    }
    if (this.#begun !== null) this.#explain(reason);
    this.#attemptTimer = setTimeout(() => this.#attempt(), this.#attempts === 0 ? 0 : Math.min(100 * this.#attempts, ATTEMPT_MS / 2));
  }

  /** The first connection failed: a browser does not say why, but the gateway does when it is asked. */
  async #explain(reason) {
    if (reason) return this.#giveUp(reason);
    try {
      const answer = await fetch(this.#url.replace(/^ws/, "http"), { cache: "no-store" });
      if (answer.status === 403 || answer.status === 503) this.#giveUp((await answer.text()).trim());
    } catch { /* nobody is there: try on */ }
  }

  /** Four times a second: has the gateway been heard? */
  #look() {
    const at = now();
    // This page stood still itself: what came meanwhile is about to be handled.
    if (at - this.#looked > 4 * LOOK_MS) this.#heard = Math.max(this.#heard, at - LOOK_MS);
    this.#looked = at;
    if (this.#connected && at - this.#heard > this.#deadMs) this.#broken("");
    for (const publisher of this.#publishers.values()) publisher._pump();
  }

  #welcome(said) {
    clearTimeout(this.#attemptTimer);
    this.#attempts = 0;
    this.#node = said.node;
    this.#deadMs = Math.max(1000, said.beat_s * 1000 * SILENT_BEATS);
    const anew = !said.resumed;
    this.#token = said.token;
    this.#connected = true;
    const unanswered = [...this.#pending.values()];
    if (anew) {
      this.#life += 1;
      this.#sources.clear();
      if (this.#ever) this.#openAgain();
    }
    for (const asked of unanswered) this.#write(asked.text);
    for (const subscriber of this.#subscribers.values()) subscriber._resume(anew);
    for (const publisher of this.#publishers.values()) publisher._resume(anew);
    for (const watch of this.#watches.values()) watch._resume();
    const first = !this.#ever;
    this.#ever = true;
    this.#begun?.resolve();
    this.#fire(first ? "connected" : "back");
  }

  /** The gateway knows nothing of us: tags first, then what is open on them. */
  #openAgain() {
    for (const tag of this.#tags.values()) tag._open(true);
  }

  #fire(detail) {
    this.dispatchEvent(new CustomEvent("change", { detail }));
  }

  #write(what) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(what);
  }

  // ---------------------------------------------------------------- what the gateway says

  #hear(said) {
    switch (said.op) {
      case "beat":
        this.held = said.held === true;
        for (const [number, total] of Object.entries(said.lost ?? {})) this.#subscribers.get(Number(number))?._lostTotal(total);
        return this.#write('{"op":"beat"}');
      case "welcome": return this.#welcome(said);
      case "source": return this.#remember(said.source, { publisher: Object.freeze(native(said.publisher)), codec: said.codec, schema: said.schema });
      case "paced": return this.#subscribers.get(said.subscription)?._paced(said.every);
      case "presence": return this.#watches.get(said.watch)?._heard(native(said.presence));
      case "failed": return this.#subscribers.get(said.subscription)?._failed(new RingcastError(said.error, said.message), said.ended);
      case "refused": return this.#publishers.get(said.publisher)?._refused(said.number, new RingcastError(said.error, said.message));
    }
    const asked = this.#pending.get(said.id);
    if (asked === undefined) {
      if (said.op === "error") console.warn(`ringcast: ${said.error}: ${said.message}`);
      return;
    }
    this.#pending.delete(said.id);
    if (said.op === "error") asked.reject(new RingcastError(said.error, said.message));
    else asked.resolve(said.op === "pulled" ? { ...said, messages: asked.messages } : said);
  }

  #remember(number, source) {
    this.#sources.set(number, source);
    if (this.#sources.size > SOURCES) this.#sources.delete(this.#sources.keys().next().value);
  }

  #receive(buffer) {
    const view = new DataView(buffer);
    const kind = view.getUint8(0), number = view.getUint32(4, true);
    if (kind === SENT) return this.#publishers.get(number)?._sent(view.getUint32(8, true), Number(view.getBigUint64(16, true)));
    const source = this.#sources.get(view.getUint32(44, true));
    const message = new Message(view, source);
    if (kind === PULLED) return void this.#pending.get(number)?.messages.push(message);
    if (kind === MESSAGE) this.#subscribers.get(number)?._arrived(message);
  }

  // ---------------------------------------------------------------- for what it gives out

  get _life() { return this.#life; }
  _number() { return ++this.#numbers; }
  _check() { if (this.#closed) throw closed("session"); }

  /** Ask the gateway; again after a broken connection, when the answer did not come. */
  _ask(op, fields) {
    if (this.#closed) return Promise.reject(closed("session"));
    const id = ++this.#ids;
    const text = JSON.stringify({ op, id, ...fields });
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { text, resolve, reject, messages: [] });
      if (this.#connected) this.#write(text);
    });
  }

  _send(frame) { this.#socket.send(frame); }

  _take(number, count) {
    const view = new DataView(new ArrayBuffer(TAKEN_BYTES));
    view.setUint8(0, TAKEN);
    view.setUint32(4, number, true);
    view.setUint32(8, count % WRAP, true);
    this.#write(view.buffer);
  }

  _holds(kind, number, thing) {
    const things = { tag: this.#tags, subscriber: this.#subscribers, publisher: this.#publishers, watch: this.#watches }[kind];
    if (thing === null) things.delete(number);
    else things.set(number, thing);
  }
}

/** Made by `session.tag`. */
export class Tag {
  #session;
  #options;
  #attributes = null;

  constructor(session, name, options) {
    session._check();
    this.#session = session;
    this.name = name;
    this.#options = Object.fromEntries(Object.entries(options).map(([key, value]) => [snake(key), value]));
    this._open(false);
    session._holds("tag", session._number(), this);
  }

  /** Resolves when the tag is there; rejects with UnknownTag, TagConflict... */
  ready;
  /** As all of its users agreed: codec, schema, depth... Known when `ready`. */
  get attributes() { return this.#attributes; }
  get codec() { return this.#attributes?.codec ?? this.#options.codec; }

  _open(again) {
    const options = again ? { ...this.#options, create: true } : this.#options;
    this.ready = this.#session._ask("tag", { name: this.name, options }).then((said) => {
      this.#attributes = native(said.attributes);
      return this;
    });
    this.ready.catch(() => {});
  }

  /** Options: `onSlow`. */
  publisher(options = {}) { return new Publisher(this.#session, this, options); }
  /** Options as in Python: `start`, `reliable`, `every`, `rateHz`, `size`, `at`, `transport`, `ordered`; and `priority`, `urgency`, `only`. */
  subscribe(options = {}) { return new Subscriber(this.#session, this.name, options, this); }
  /** Options as in Python: `depth`, `publisher`, `at`, `every`, `size`. */
  history(options = {}) { return new History(this.#session, this.name, options); }
  watch() { return new Watch(this.#session, this.name, ["publisher", "subscriber"]); }
  async publishers() { return native((await this.#session._ask("list", { what: "publishers", pattern: this.name })).rows); }
  async subscribers() { return native((await this.#session._ask("list", { what: "subscribers", pattern: this.name })).rows); }
}
