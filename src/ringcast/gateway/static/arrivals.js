import { RingcastError } from "./values.js";

/** Things that come one after the other, for `for await` and `recv`. */
export class Arrivals {
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

/** What `source.recv` gives, one after the other, until it is closed; it is closed when nobody wants more. */
export async function* each(source) {
  try {
    while (true) yield await source.recv();
  } catch (error) {
    if (!(error instanceof RingcastError) || error.kind !== "ClosedError") throw error;
  } finally {
    source.close();
  }
}
