import { codecs } from "./codecs.js";
import { PUBLISH, DISCARDABLE, TIMED, PUBLISH_HEADER, WRAP } from "./frames.js";
import { RingcastError, closed, now, native } from "./values.js";

const UNANSWERED = 64, UNANSWERED_BYTES = 1 << 20;
const WAITING = 256, WAITING_BYTES = 4 << 20;
const LATE_MS = 300, LATE_DISCARDABLE_MS = 100;

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
