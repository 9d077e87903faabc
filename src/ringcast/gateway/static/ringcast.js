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

export { codecs };

const VERSION = 1;
const MESSAGE = 1, PULLED = 2, PUBLISH = 3, SENT = 4, TAKEN = 5;
const DISCARDABLE = 1, TIMED = 2;
const MESSAGE_HEADER = 48, PUBLISH_HEADER = 24, TAKEN_BYTES = 12;
const WRAP = 2 ** 32;

const LOOK_MS = 250;
const SILENT_BEATS = 4; // so many beats of the gateway missing, and the connection is dead
const ATTEMPT_MS = 1000, MOST_ATTEMPT_MS = 8000, SHORT_ATTEMPTS = 8;
const UNANSWERED = 64, UNANSWERED_BYTES = 1 << 20;
const WAITING = 256, WAITING_BYTES = 4 << 20;
const LATE_MS = 300, LATE_DISCARDABLE_MS = 100;
const SOURCES = 2048; // the gateway remembers half as many
const TAKEN_AT_ONCE = 8, TAKEN_MS = 5;

/** What the gateway or this module refuses. `kind` is the name of the error in Python: "UnknownTag", "Empty"... */
export class RingcastError extends Error {
  constructor(kind, message) {
    super(message);
    this.name = "RingcastError";
    this.kind = kind;
  }
}

const closed = (what) => new RingcastError("ClosedError", `this ${what} is closed; open a new one to go on`);
const now = () => performance.now();

/** Keys as JavaScript writes them, and numbers too large for a double as BigInt. */
function native(value, key = "") {
  if (Array.isArray(value)) return value.map((item) => native(item));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [camel(name), native(item, name)]));
  }
  if (typeof value === "string" && (key.endsWith("_ns") || key === "incarnation" || key === "tag_id")) return BigInt(value);
  return value;
}

const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

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
  /** Options as in Python: `start`, `reliable`, `every`, `rateHz`, `size`, `at`, `transport`, `ordered`; and `priority`, `only`. */
  subscribe(options = {}) { return new Subscriber(this.#session, this.name, options, this); }
  /** Options as in Python: `depth`, `publisher`, `at`, `every`, `size`. */
  history(options = {}) { return new History(this.#session, this.name, options); }
  watch() { return new Watch(this.#session, this.name, ["publisher", "subscriber"]); }
  async publishers() { return native((await this.#session._ask("list", { what: "publishers", pattern: this.name })).rows); }
  async subscribers() { return native((await this.#session._ask("list", { what: "subscribers", pattern: this.name })).rows); }
}

const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** One message as received. Times are UTC in nanoseconds (BigInt), by the publisher's clock and the gateway's. */
export class Message {
  #view;
  #source;
  #data;
  #decoded = false;
  _life = 0;

  constructor(view, source) {
    this.#view = view;
    this.#source = source;
    /** How many messages of its publisher, due to this subscription, are missing before this one. */
    this.lost = view.getUint32(40, true);
  }

  get seq() { return Number(this.#view.getBigUint64(8, true)); }
  get tag() { return this.#source.publisher.tag; }
  get publisher() { return this.#source.publisher; }
  get codec() { return this.#source.codec; }
  get discardable() { return (this.#view.getUint8(1) & DISCARDABLE) !== 0; }
  get eventNs() { return this.#view.getBigInt64(16, true); }
  get sentNs() { return this.#view.getBigInt64(24, true); }
  get receivedNs() { return this.#view.getBigInt64(32, true); }
  /** What was sent, as bytes. */
  get bytes() { return new Uint8Array(this.#view.buffer, MESSAGE_HEADER); }

  /** As the tag's codec decodes it; bytes where this module has no codec of that name. Throws DecodeError. */
  get data() {
    if (!this.#decoded) {
      const codec = codecs[this.#source.codec];
      try {
        this.#data = codec === undefined ? this.bytes : codec.decode(this.bytes);
      } catch (error) {
        throw new RingcastError("DecodeError", `a message of ${this.tag} is not ${this.#source.codec}: ${error.message}`);
      }
      this.#decoded = true;
    }
    return this.#data;
  }
}

/** Things that come one after the other, for `for await` and `recv`. */
class Arrivals {
  #queue = [];
  #waiting = [];
  #end = null;

  get length() { return this.#queue.length; }
  get ended() { return this.#end !== null; }

  put(thing) {
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#queue.push(thing);
    else waiting.resolve(thing);
  }

  /** Nothing more will come; `error` is why. Those that wait get it, and later ones after what is there. */
  end(error) {
    if (this.#end !== null) return;
    this.#end = error;
    for (const waiting of this.#waiting.splice(0)) waiting.reject(error);
  }

  takeNowait() { return this.#queue.shift(); }

  take(timeoutMs) {
    if (this.#queue.length > 0) return Promise.resolve(this.#queue.shift());
    if (this.#end !== null) return Promise.reject(this.#end);
    return new Promise((resolve, reject) => {
      const waiting = { resolve, reject };
      this.#waiting.push(waiting);
      if (timeoutMs === undefined) return;
      const timer = setTimeout(() => {
        const at = this.#waiting.indexOf(waiting);
        if (at >= 0) this.#waiting.splice(at, 1);
        reject(new RingcastError("TimeoutError", `nothing within ${timeoutMs} ms`));
      }, timeoutMs);
      waiting.resolve = (thing) => { clearTimeout(timer); resolve(thing); };
      waiting.reject = (error) => { clearTimeout(timer); reject(error); };
    });
  }
}

/** Made by `tag.subscribe` or `session.subscribe`. One consumer: `for await`, `recv` or `onMessage`. */
export class Subscriber {
  #session;
  #number;
  #options;
  #tag;
  #arrivals = new Arrivals();
  #taken = 0;
  #told = 0;
  #toldAt = 0;
  #timer = null;
  #life;
  #carried = 0; // by the messages that came
  #total = 0; // by the gateway's count, which knows of the end of a stream too
  #before = 0;
  #last = new Map();
  #steps = new Map();
  #anew = new Set();
  #listeners = [];

  constructor(session, pattern, options, tag) {
    session._check();
    this.#session = session;
    this.#tag = tag;
    this.pattern = pattern;
    this.#number = session._number();
    this.#options = options;
    this.#life = session._life;
    session._holds("subscriber", this.#number, this);
    this.ready = this.#open();
    this.ready.catch((error) => this.#arrivals.end(error));
  }

  /** Resolves when the subscription stands: what is sent from then on comes. Rejects with what was wrong. */
  ready;
  _received = 0;
  /** Of the messages of each publisher, those whose number is a multiple of this come, because this page is behind. */
  every = 1;
  /** The message that arrived last, taken or not. */
  latest = null;
  /** How many arrived. */
  received = 0;
  /** How many this subscription lost so far, with those left out because the page was behind or away. */
  get lost() { return Math.max(this.#carried, this.#total); }
  get tag() { return this.#tag; }
  get closed() { return this.#arrivals.ended; }

  async #open() {
    if (this.#tag !== null) await this.#tag.ready;
    const { start, size, rateHz, ...rest } = this.#options;
    const fields = { subscription: this.#number, pattern: this.pattern, ...rest };
    if (start !== undefined) fields.start = start instanceof Map ? Object.fromEntries([...start].map(([who, seq]) => [String(who), Number(seq)])) : start;
    if (size !== undefined) fields.size = size;
    if (rateHz !== undefined) fields.rate_hz = rateHz;
    await this.#session._ask("subscribe", fields);
    return this;
  }

  /** The next message. Rejects with TimeoutError, ClosedError, and what ended the subscription. */
  async recv(timeoutMs = undefined) { return this.#took(await this.#arrivals.take(timeoutMs)); }

  /** The next message, or undefined. */
  recvNowait() {
    const message = this.#arrivals.takeNowait();
    return message === undefined ? undefined : this.#took(message);
  }

  async *[Symbol.asyncIterator]() {
    try {
      while (true) yield await this.recv();
    } catch (error) {
      if (!(error instanceof RingcastError) || error.kind !== "ClosedError") throw error;
    } finally {
      this.close();
    }
  }

  /** Call `callback` for each, one after the other; a promise that it returns is waited for. */
  async onMessage(callback) {
    for await (const message of this) {
      try {
        await callback(message);
      } catch (error) {
        reportError(error);
      }
    }
  }

  /** Call `callback(every)` whenever the gateway leaves out more or fewer messages. */
  onPaced(callback) { this.#listeners.push(callback); }

  async move({ at, transport }) { await this.#session._ask("move", { subscription: this.#number, at, transport }); }

  close() {
    if (this.#arrivals.ended) return;
    this._end(closed("subscriber"));
    if (!this.#session.closed) this.#session._ask("unsubscribe", { subscription: this.#number }).catch(() => {});
  }

  _end(error) {
    clearTimeout(this.#timer);
    this.#session._holds("subscriber", this.#number, null);
    this.#arrivals.end(error);
  }

  #took(message) {
    if (message._life !== this.#life) return message;
    this.#taken += 1;
    const due = this.#taken - this.#told;
    if (due >= TAKEN_AT_ONCE || now() - this.#toldAt > TAKEN_MS) this.#tell();
    else this.#timer ??= setTimeout(() => this.#tell(), TAKEN_MS);
    return message;
  }

  #tell() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#told = this.#taken;
    this.#toldAt = now();
    this.#session._take(this.#number, this.#taken);
  }

  _arrived(message) {
    this._received += 1;
    message._life = this.#life;
    const who = message.publisher.incarnation, seq = message.seq, last = this.#last.get(who);
    if (this.#anew.delete(who) && last !== undefined) {
      // The gateway began anew: what came before comes again, and what went by is counted by its number.
      if (seq <= last) { this.#anew.add(who); this.#took(message); return; }
      const step = this.#steps.get(who) ?? this.#options.every ?? 1;
      const missed = Math.max(0, Math.floor((seq - last) / step) - 1);
      message.lost += missed;
      this.#before += missed;
      this.#total += missed;
    } else if (last !== undefined && message.lost === 0) this.#steps.set(who, seq - last);
    this.#last.set(who, seq);
    this.#carried += message.lost;
    this.received += 1;
    this.latest = message;
    this.#arrivals.put(message);
  }

  _lostTotal(total) { this.#total = this.#before + total; }

  _paced(every) {
    this.every = every;
    for (const listener of this.#listeners) listener(every);
  }

  _failed(error, ended) {
    if (ended) this._end(error);
    else console.warn(`ringcast: ${this.pattern}: ${error.message}`);
  }

  _resume(anew) {
    if (this.every !== 1) this._paced(1);
    if (!anew) return this.#tell();
    if (this.#life === this.#session._life) return;
    this.#life = this.#session._life;
    this._received = this.#taken = this.#told = 0;
    this.#before = this.#carried = this.#total = this.lost;
    this.#anew = new Set(this.#last.keys());
    this.#open().catch((error) => this._end(error));
  }
}

/** Made by `tag.publisher`. */
export class Publisher {
  #session;
  #tag;
  #number;
  #options;
  #last = 0;
  #waiting = [];
  #waitingBytes = 0;
  #unanswered = new Map();
  #unansweredBytes = 0;
  #isOpen = false;
  #life;
  #closed = false;

  constructor(session, tag, options) {
    session._check();
    this.#session = session;
    this.#tag = tag;
    this.#options = options;
    this.#number = session._number();
    this.#life = session._life;
    session._holds("publisher", this.#number, this);
    this.ready = this.#open();
    this.ready.catch((error) => this._end(error));
  }

  /** Resolves when the publisher is registered. */
  ready;
  /** Who this is to its subscribers; known when `ready`. */
  info = null;
  /** Messages of `sendNowait` that were not sent, because the gateway was behind or away. */
  dropped = 0;
  /** How long the gateway took to answer the last message, there and back. */
  delayMs = 0;
  get tag() { return this.#tag; }
  get closed() { return this.#closed; }
  /** Messages that the gateway has not answered. */
  get unanswered() { return this.#unanswered.size + this.#waiting.length; }

  async #open() {
    await this.#tag.ready;
    const { onSlow } = this.#options;
    const fields = { publisher: this.#number, tag: this.#tag.name };
    if (onSlow !== undefined) fields.on_slow = onSlow;
    const said = await this.#session._ask("publish", fields);
    this.info = Object.freeze(native(said.publisher));
    this.#isOpen = true;
    this._pump();
    return this;
  }

  /**
   * Send a message; resolves with its sequence number once it is in the publisher's ring. Waits while the gateway is
   * away or behind, and sends again what got no answer. Rejects with BusyError when too much waits already, EncodeError,
   * MessageTooLarge... A promise that nobody looks at does no harm.
   */
  send(data, options = {}) {
    if (this.#tag.codec === undefined) return this.#tag.ready.then(() => this.send(data, options));
    const sending = new Promise((resolve, reject) => {
      if (this.#closed) throw closed("publisher");
      const entry = this.#entry(data, options, { resolve, reject, again: true });
      if (this.#waiting.length >= WAITING || (this.#waiting.length > 0 && this.#waitingBytes > WAITING_BYTES)) {
        throw new RingcastError("BusyError", `${this.#waiting.length} messages wait already; await send(), or use sendNowait()`);
      }
      this.#waiting.push(entry);
      this.#waitingBytes += entry.frame.byteLength;
      this._pump();
    });
    sending.catch(() => {});
    return sending;
  }

  /** Send a message if that needs no waiting; whether it was sent. For streams whose next message is better. */
  sendNowait(data, options = {}) {
    if (this.#closed) throw closed("publisher");
    const late = options.discardable ? LATE_DISCARDABLE_MS : LATE_MS;
    if (!this.#mayWrite() || this.#waiting.length > 0 || this.#oldestMs() > late) {
      this.dropped += 1;
      return false;
    }
    this.#write(this.#entry(data, options, { resolve: () => {}, reject: (error) => console.warn(`ringcast: ${error.message}`), again: false }));
    return true;
  }

  close() {
    if (this.#closed) return;
    this._end(closed("publisher"));
    if (!this.#session.closed) this.#session._ask("unpublish", { publisher: this.#number }).catch(() => {});
  }

  _end(error) {
    this.#closed = true;
    this.#session._holds("publisher", this.#number, null);
    for (const entry of [...this.#unanswered.values(), ...this.#waiting]) entry.reject(error);
    this.#unanswered.clear();
    this.#waiting = [];
  }

  #entry(data, { eventNs, discardable = false }, rest) {
    const codec = codecs[this.#tag.codec] ?? codecs.bytes;
    let payload;
    try {
      payload = codec.encode(data);
    } catch (error) {
      throw new RingcastError("EncodeError", `${this.#tag.name} takes ${this.#tag.codec}: ${error.message}`);
    }
    const frame = new Uint8Array(PUBLISH_HEADER + payload.byteLength), view = new DataView(frame.buffer);
    view.setUint8(0, PUBLISH);
    view.setUint8(1, (discardable ? DISCARDABLE : 0) | (eventNs === undefined ? 0 : TIMED));
    view.setUint32(4, this.#number, true);
    if (eventNs !== undefined) view.setBigInt64(16, BigInt(eventNs), true);
    frame.set(payload, PUBLISH_HEADER);
    return { frame, number: 0, at: 0, ...rest };
  }

  #mayWrite() {
    return this.#isOpen && this.#session.connected && this.#unanswered.size < UNANSWERED
      && (this.#unanswered.size === 0 || this.#unansweredBytes < UNANSWERED_BYTES);
  }

  #oldestMs() {
    for (const entry of this.#unanswered.values()) return now() - entry.at;
    return 0;
  }

  #write(entry) {
    this.#last = (this.#last + 1) % WRAP;
    entry.number = this.#last;
    this.#unanswered.set(entry.number, entry);
    this.#unansweredBytes += entry.frame.byteLength;
    this.#transmit(entry);
  }

  #transmit(entry) {
    entry.at = now();
    new DataView(entry.frame.buffer).setUint32(8, entry.number, true);
    this.#session._send(entry.frame);
  }

  _pump() {
    while (this.#waiting.length > 0 && this.#mayWrite()) {
      const entry = this.#waiting.shift();
      this.#waitingBytes -= entry.frame.byteLength;
      this.#write(entry);
    }
  }

  #answered(number) {
    const entry = this.#unanswered.get(number);
    if (entry === undefined) return undefined;
    this.#unanswered.delete(number);
    this.#unansweredBytes -= entry.frame.byteLength;
    this.delayMs = now() - entry.at;
    return entry;
  }

  _sent(number, seq) {
    this.#answered(number)?.resolve(seq);
    this._pump();
  }

  _refused(number, error) {
    this.#answered(number)?.reject(error);
    this._pump();
  }

  _resume(anew) {
    const entries = [...this.#unanswered.values()];
    this.#unanswered.clear();
    this.#unansweredBytes = 0;
    const again = entries.filter((entry) => entry.again);
    this.dropped += entries.length - again.length;
    if (anew && this.#life !== this.#session._life) {
      this.#life = this.#session._life;
      this.#last = 0;
      this.#isOpen = false;
      this.#waiting.unshift(...again);
      this.#waitingBytes += again.reduce((sum, entry) => sum + entry.frame.byteLength, 0);
      this.#open().catch((error) => this._end(error));
      return;
    }
    for (const entry of again) {
      this.#unanswered.set(entry.number, entry);
      this.#unansweredBytes += entry.frame.byteLength;
      this.#transmit(entry);
    }
    this._pump();
  }
}

/** Made by `tag.history`: every call is one pull. Rejects with Empty, Overwritten, NotYet, HistoryError, UnknownTag... */
export class History {
  #session;
  #fields;

  constructor(session, tag, { depth, publisher, at, every, size } = {}) {
    this.#session = session;
    const whose = publisher?.incarnation ?? publisher?.info?.incarnation ?? publisher;
    this.#fields = { tag, depth, at, every, size, publisher: whose === undefined ? undefined : String(whose) };
  }

  /** Nodes that did not answer the last pull. */
  unanswered = [];

  /** The newest message, or the one `back` before it. */
  async latest(back = 0) { return (await this.#pull("latest", back))[0]; }
  async at(seq) { return (await this.#pull("at", seq))[0]; }
  range(first, last) { return this.#pull("range", first, last); }
  since(seq) { return this.#pull("since", seq); }
  /** Times are UTC in nanoseconds: BigInt, or a Date. */
  async before(sentNs) { return (await this.#pull("before", ns(sentNs)))[0]; }
  between(firstNs, lastNs) { return this.#pull("between", ns(firstNs), ns(lastNs)); }
  async bounds() { return (await this.#session._ask("pull", { ...this.#fields, what: "bounds" })).bounds; }

  async #pull(what, ...numbers) {
    const said = await this.#session._ask("pull", { ...this.#fields, what, arguments: numbers.map(String) });
    this.unanswered = said.unanswered;
    return said.messages;
  }
}

const ns = (time) => (time instanceof Date ? BigInt(time.getTime()) * 1000000n : BigInt(time));

/** Made by `session.watch` or `tag.watch`: what comes and goes, for `for await` and `recv`. */
export class Watch {
  #session;
  #number;
  #fields;
  #arrivals = new Arrivals();
  #present = new Map();
  #begun = false;

  constructor(session, pattern, kinds) {
    session._check();
    this.#session = session;
    this.#number = session._number();
    this.#fields = { watch: this.#number, pattern, kinds };
    session._holds("watch", this.#number, this);
    this.ready = this.#open();
    this.ready.catch((error) => this._end(error));
  }

  ready;
  /** What is there now. */
  get present() { return [...this.#present.values()]; }
  get closed() { return this.#arrivals.ended; }

  async #open() {
    const rows = native((await this.#session._ask("watch", this.#fields)).rows);
    const there = new Map(rows.filter((row) => row.came).map((row) => [identity(row), row]));
    for (const [key, row] of [...this.#present]) if (!there.has(key)) this._heard({ ...row, came: false });
    for (const row of there.values()) this._heard(row);
    this.#begun = true;
    return this;
  }

  recv(timeoutMs = undefined) { return this.#arrivals.take(timeoutMs); }

  async *[Symbol.asyncIterator]() {
    try {
      while (true) yield await this.recv();
    } catch (error) {
      if (!(error instanceof RingcastError) || error.kind !== "ClosedError") throw error;
    } finally {
      this.close();
    }
  }

  close() {
    if (this.#arrivals.ended) return;
    this._end(closed("watch"));
    if (!this.#session.closed) this.#session._ask("unwatch", { watch: this.#number }).catch(() => {});
  }

  _end(error) {
    this.#session._holds("watch", this.#number, null);
    this.#arrivals.end(error);
  }

  _heard(presence) {
    const key = identity(presence);
    if (presence.came === this.#present.has(key)) return;
    if (presence.came) this.#present.set(key, presence);
    else this.#present.delete(key);
    this.#arrivals.put(presence);
  }

  _resume() { if (this.#begun) this.#open().catch((error) => this._end(error)); }
}

function identity({ kind, node, publisher, subscriber }) {
  const info = publisher ?? subscriber;
  return [kind, node, info?.pid, info?.id, info?.incarnation, info?.tag ?? info?.pattern].join(" ");
}
