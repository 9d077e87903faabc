// What happens to sound between microphone and loudspeaker: blocks, silence, buffers, mixing. Pure.
//
// The same as `ringcast/conference/sound/` in Python, name by name; both are checked on the same vectors. It runs in
// AudioWorklets, so it must not know the page: no DOM, no clock, no network.

export const MAGIC = 0xc5;
export const HEADER_BYTES = 12;
const SILENT = 1;

function format(number, rateHz, bits, frames) {
  return Object.freeze({
    number, rateHz, bits, frames,
    blockBytes: (frames * bits) / 8,
    blockMs: (frames * 1000) / rateHz,
    low: -(2 ** (bits - 1)),
    high: 2 ** (bits - 1) - 1,
  });
}

export const TELEPHONE = format(1, 8000, 8, 256); // the paper's
export const WIDE = format(2, 16000, 16, 512);
export const FORMATS = { 1: TELEPHONE, 2: WIDE };

export class BadBlock extends Error {}

export function pack(form, participant, number, samples, silent) {
  if (samples.length !== form.frames) throw new RangeError(`a block has ${form.frames} samples, not ${samples.length}`);
  const bytes = new Uint8Array(HEADER_BYTES + form.blockBytes);
  const view = new DataView(bytes.buffer);
  bytes[0] = MAGIC;
  bytes[1] = form.number;
  bytes[2] = silent ? SILENT : 0;
  view.setUint32(4, participant, true);
  view.setUint32(8, number, true);
  for (let i = 0; i < samples.length; i++) {
    if (form.bits === 8) bytes[HEADER_BYTES + i] = samples[i] + 128;
    else view.setInt16(HEADER_BYTES + 2 * i, samples[i], true);
  }
  return bytes;
}

export function unpackUntrusted(bytes) {
  if (bytes.length < HEADER_BYTES) throw new BadBlock(`${bytes.length} bytes are too few for a block of sound`);
  const form = FORMATS[bytes[1]];
  if (bytes[0] !== MAGIC || form === undefined) throw new BadBlock("these bytes are not a block of sound");
  const length = bytes.length - HEADER_BYTES;
  if (length !== form.blockBytes) throw new BadBlock(`a block of ${form.rateHz} Hz has ${form.blockBytes} bytes, not ${length}`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const samples = new Int32Array(form.frames);
  for (let i = 0; i < form.frames; i++) {
    samples[i] = form.bits === 8 ? bytes[HEADER_BYTES + i] - 128 : view.getInt16(HEADER_BYTES + 2 * i, true);
  }
  return { form, participant: view.getUint32(4, true), number: view.getUint32(8, true), silent: (bytes[2] & SILENT) !== 0, samples };
}

export function fromFloats(form, sound) {
  const samples = new Int32Array(sound.length);
  for (let i = 0; i < sound.length; i++) {
    samples[i] = Math.min(form.high, Math.max(form.low, Math.floor(sound[i] * (form.high + 1) + 0.5)));
  }
  return samples;
}

// ------------------------------------------------------------------ silence

export const THRESHOLD = 1;

export function level(form, samples) {
  let total = 0;
  for (let i = 0; i < samples.length; i++) total += Math.abs(samples[i]);
  return total / (samples.length * 2 ** (form.bits - 8));
}

export function isSilent(form, samples, threshold = THRESHOLD) {
  return level(form, samples) <= threshold;
}

// ------------------------------------------------------------------ mixing

function added(form, streams) {
  const total = new Int32Array(form.frames);
  for (const stream of streams) for (let i = 0; i < total.length; i++) total[i] += stream[i];
  return total;
}

function divided(total, by) {
  const shared = new Int32Array(total.length);
  for (let i = 0; i < total.length; i++) shared[i] = Math.trunc(total[i] / by);
  return shared;
}

export class ByPublishers {
  constructor(form) {
    this.form = form;
    this.divisor = 1;
  }

  mix(streams, publishers) {
    this.divisor = Math.max(1, publishers, streams.length);
    return divided(added(this.form, streams), this.divisor);
  }
}

export class BySpeakers {
  constructor(form, cleanBlocks = 1) {
    this.form = form;
    this.cleanBlocks = cleanBlocks;
    this.clean = 0;
    this.divisor = 1;
    this.overflows = 0;
  }

  mix(streams) {
    const total = added(this.form, streams);
    let mixed = divided(total, this.divisor);
    if (this.fits(mixed)) {
      this.clean += 1;
      if (this.clean >= this.cleanBlocks) {
        this.clean = 0;
        this.divisor = Math.max(1, this.divisor - 1);
      }
      return mixed;
    }
    this.clean = 0;
    this.overflows += 1;
    while (!this.fits(mixed)) {
      this.divisor += 1;
      mixed = divided(total, this.divisor);
    }
    return mixed;
  }

  fits(mixed) {
    for (let i = 0; i < mixed.length; i++) if (mixed[i] < this.form.low || mixed[i] > this.form.high) return false;
    return true;
  }
}

export const MIXERS = { publishers: ByPublishers, speakers: BySpeakers };

// ------------------------------------------------------------------ buffers

const SPARE = 1; // one block may stay as a reserve against jitter
const HALF = 2 ** 31;
const RESTART = 2 ** 12; // a number so far behind is a microphone that started again

// How far `second` is after `first`; negative when it is before.
function distance(first, second) {
  const ahead = second - first + HALF;
  return ((ahead % (2 * HALF)) + 2 * HALF) % (2 * HALF) - HALF;
}

export class SpeakerBuffer {
  constructor({ maxS = 2, maxT = 6, start = 1, settle = 16 } = {}) {
    this.maxS = maxS;
    this.maxT = maxT;
    this.start = start;
    this.settle = settle;
    this.slots = 0;
    this.leftOver = maxT;
    this.waiting = [];
    this.last = null;
    this.playing = false;
    this.silenceDiscarded = 0;
    this.talkDiscarded = 0;
    this.late = 0;
    this.empty = 0;
  }

  // `block` has number, silent and samples, and whatever else its owner wants back from `take`.
  put(block) {
    if (this.last !== null) {
      const behind = distance(block.number, this.last);
      if (behind >= RESTART) {
        this.waiting.length = 0;
        this.last = null;
      } else if (behind >= 0) {
        this.late += 1;
        return;
      }
    }
    let at = this.waiting.length;
    while (at > 0 && distance(block.number, this.waiting[at - 1].number) > 0) at -= 1;
    if (at > 0 && this.waiting[at - 1].number === block.number) {
      this.late += 1;
      return;
    }
    this.waiting.splice(at, 0, block);
    while (this.waiting.length > this.maxS && this.discardSilence());
    while (this.waiting.length > this.maxT) this.discardTalk();
  }

  // The block for this slot, or null.
  take() {
    if (!this.playing && this.waiting.length >= this.start) this.playing = true;
    if (!this.playing || this.waiting.length === 0) {
      if (this.last !== null) this.empty += 1;
      this.playing = false;
      this.slots = 0;
      this.leftOver = this.maxT;
      return null;
    }
    const block = this.waiting.shift();
    this.last = block.number;
    this.leftOver = Math.min(this.leftOver, this.waiting.length);
    this.slots += 1;
    if (this.slots >= this.settle) {
      for (let i = SPARE; i < this.leftOver; i++) if (!this.discardSilence()) this.discardTalk();
      this.slots = 0;
      this.leftOver = this.maxT;
    }
    return block;
  }

  discardSilence() {
    const at = this.waiting.findIndex((block) => block.silent);
    if (at < 0) return false;
    this.waiting.splice(at, 1);
    this.silenceDiscarded += 1;
    return true;
  }

  discardTalk() {
    this.waiting.shift();
    this.talkDiscarded += 1;
  }
}
