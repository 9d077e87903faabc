import { codecs } from "./codecs.js";
import { DISCARDABLE, MESSAGE_HEADER } from "./frames.js";
import { RingcastError } from "./values.js";

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
