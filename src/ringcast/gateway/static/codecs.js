/**
 * Values to bytes and back, by the name of a tag's codec. An application may add its own: `codecs.mine = {encode, decode}`.
 */

const text = new TextEncoder(), reader = new TextDecoder("utf-8", { fatal: true });

function bytesOf(value) {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (typeof value === "string") return text.encode(value);
  throw new TypeError(`bytes are an ArrayBuffer, a view of one or a string, not ${value === null ? "null" : typeof value}`);
}

function jsonOf(value) {
  const written = JSON.stringify(value);
  if (written === undefined) throw new TypeError(`${typeof value} has no JSON`);
  return text.encode(written);
}

export const codecs = {
  bytes: { encode: bytesOf, decode: (bytes) => bytes },
  json: { encode: jsonOf, decode: (bytes) => JSON.parse(reader.decode(bytes)) },
};
