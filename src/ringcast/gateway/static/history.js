import { ns } from "./values.js";

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
