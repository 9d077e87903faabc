import { Arrivals, each } from "./arrivals.js";
import { closed, now } from "./values.js";

const TAKEN_AT_ONCE = 8, TAKEN_MS = 5;

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

  [Symbol.asyncIterator]() { return each(this); }

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
