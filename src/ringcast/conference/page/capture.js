// Microphone to blocks, on the audio thread: collects a block's worth of samples, says whether it is silence, and hands
// the packed block to the page, with the time when its last sample came.
import { FORMATS, fromFloats, isSilent, level, pack } from "./sound.js";

class Capture extends AudioWorkletProcessor {
  constructor({ processorOptions: { format, participant, threshold } }) {
    super();
    this.form = FORMATS[format];
    this.participant = participant;
    this.threshold = threshold;
    this.collected = new Float32Array(this.form.frames);
    this.filled = 0;
    this.number = Math.floor(Math.random() * 2 ** 31);
    this.ended = false;
    this.port.onmessage = ({ data }) => {
      if (data.threshold !== undefined) this.threshold = data.threshold;
      if (data.end) this.ended = true;
    };
  }

  process([[channel]]) {
    if (this.ended) return false;
    // Without an input the microphone is muted or away; slots go on, so that numbers keep time.
    const quantum = channel ?? new Float32Array(128);
    for (let i = 0; i < quantum.length; i++) {
      this.collected[this.filled++] = quantum[i];
      if (this.filled === this.form.frames) this.finish();
    }
    return true;
  }

  finish() {
    const samples = fromFloats(this.form, this.collected);
    const silent = isSilent(this.form, samples, this.threshold);
    const bytes = pack(this.form, this.participant, this.number, samples, silent);
    this.port.postMessage({ bytes, silent, level: level(this.form, samples), at: Date.now() }, [bytes.buffer]);
    this.number = (this.number + 1) % 2 ** 32;
    this.filled = 0;
  }
}

registerProcessor("capture", Capture);
