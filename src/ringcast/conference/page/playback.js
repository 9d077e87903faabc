// Blocks to loudspeaker, on the audio thread: a buffer for each speaker, one mixed block a slot, and what can be said of
// it. `ringcast/conference/playback.py` does the same for participants without a browser.
import { FORMATS, MIXERS, SpeakerBuffer, level, unpackUntrusted } from "./sound.js";

const TELL_SLOTS = 16;
const FORGET_SLOTS = 190; // six seconds
const KEPT = 8192; // samples of the mix, for whoever wants to look at its spectrum

class Playback extends AudioWorkletProcessor {
  constructor({ processorOptions: { format, scheme, bounds } }) {
    super();
    this.form = FORMATS[format];
    this.mixer = new MIXERS[scheme](this.form);
    this.bounds = bounds;
    this.speakers = new Map();
    this.publishers = 0;
    this.block = new Float32Array(this.form.frames);
    this.at = this.form.frames;
    this.kept = new Float32Array(KEPT);
    this.keptAt = 0;
    this.slots = 0;
    this.malformed = 0;
    this.ended = false;
    this.port.onmessage = ({ data }) => this.told(data);
  }

  told(data) {
    if (data.block) this.put(data.block, data.at);
    if (data.publishers !== undefined) this.publishers = data.publishers;
    if (data.scheme !== undefined) this.mixer = new MIXERS[data.scheme](this.form);
    if (data.end) this.ended = true;
    if (data.spectrum) {
      const mixed = new Float32Array(KEPT);
      for (let i = 0; i < KEPT; i++) mixed[i] = this.kept[(this.keptAt + i) % KEPT];
      this.port.postMessage({ mixed }, [mixed.buffer]);
    }
  }

  put(bytes, at) {
    let block;
    try {
      block = unpackUntrusted(bytes);
    } catch {
      this.malformed += 1;
      return;
    }
    if (block.form !== this.form) {
      this.malformed += 1;
      return;
    }
    let speaker = this.speakers.get(block.participant);
    if (!speaker) {
      speaker = { buffer: new SpeakerBuffer(this.bounds), delays: [], level: 0, quiet: 0, blocks: 0, silent: 0 };
      this.speakers.set(block.participant, speaker);
    }
    speaker.quiet = 0;
    speaker.blocks += 1;
    speaker.silent += block.silent;
    speaker.buffer.put({ number: block.number, silent: block.silent, samples: block.samples, at });
  }

  process(_, [[output]]) {
    if (this.ended) return false;
    for (let i = 0; i < output.length; i++) {
      if (this.at === this.form.frames) this.slot();
      output[i] = this.block[this.at++];
      this.kept[this.keptAt] = output[i];
      this.keptAt = (this.keptAt + 1) % KEPT;
    }
    return true;
  }

  slot() {
    const streams = [];
    const now = Date.now();
    for (const [participant, speaker] of this.speakers) {
      const block = speaker.buffer.take();
      if (block !== null) {
        streams.push(block.samples);
        speaker.level = level(this.form, block.samples);
        speaker.delays.push(now - block.at);
      } else if (++speaker.quiet > FORGET_SLOTS) {
        this.speakers.delete(participant);
      } else if (speaker.quiet > 2) {
        speaker.level = 0;
      }
    }
    const mixed = this.mixer.mix(streams, this.publishers);
    const full = this.form.high + 1;
    for (let i = 0; i < mixed.length; i++) this.block[i] = mixed[i] / full;
    this.at = 0;
    this.slots += 1;
    if (this.slots % TELL_SLOTS === 0) this.tell();
  }

  tell() {
    const speakers = [];
    for (const [participant, { buffer, delays, level: loud, blocks, silent }] of this.speakers) {
      speakers.push({
        participant, delays: delays.splice(0), level: loud, blocks, silent, waiting: buffer.waiting.length,
        silenceDiscarded: buffer.silenceDiscarded, talkDiscarded: buffer.talkDiscarded, late: buffer.late, empty: buffer.empty,
      });
    }
    this.port.postMessage({ speakers, divisor: this.mixer.divisor, overflows: this.mixer.overflows ?? 0, malformed: this.malformed });
  }
}

registerProcessor("playback", Playback);
