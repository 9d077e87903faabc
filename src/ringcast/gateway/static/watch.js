import { Arrivals, each } from "./arrivals.js";
import { closed, native } from "./values.js";

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

  [Symbol.asyncIterator]() { return each(this); }

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
