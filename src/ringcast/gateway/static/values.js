/** What this module refuses, and values as JavaScript and as the gateway write them. */

/** What the gateway or this module refuses. `kind` is the name of the error in Python: "UnknownTag", "Empty"... */
export class RingcastError extends Error {
  constructor(kind, message) {
    super(message);
    this.name = "RingcastError";
    this.kind = kind;
  }
}

export const closed = (what) => new RingcastError("ClosedError", `this ${what} is closed; open a new one to go on`);
export const now = () => performance.now();

/** Keys as JavaScript writes them, and numbers too large for a double as BigInt. */
export function native(value, key = "") {
  if (Array.isArray(value)) return value.map((item) => native(item));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [camel(name), native(item, name)]));
  }
  if (typeof value === "string" && (key.endsWith("_ns") || key === "incarnation" || key === "tag_id")) return BigInt(value);
  return value;
}

const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
export const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
export const ns = (time) => (time instanceof Date ? BigInt(time.getTime()) * 1000000n : BigInt(time));
