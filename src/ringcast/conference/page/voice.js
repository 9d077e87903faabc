// Microphone and loudspeaker: the two worklets, and what is known of each speaker.
import { FORMATS } from "./sound.js";

const DELAYS = 160; // the last five seconds of a speaker

export function explain(error, what) {
  const words = {
    NotAllowedError: `The browser was not allowed to use the ${what}. Allow it in the address bar and publish again.`,
    NotFoundError: `There is no ${what} on this machine. You can still receive.`,
    OverconstrainedError: `There is no ${what} that fits. You can still receive.`,
    NotReadableError: `The ${what} is used by another program, or broken.`,
  };
  if (!navigator.mediaDevices) return `Browsers give a ${what} to secure pages only: open this one by https, or on this machine by http://127.0.0.1.`;
  return words[error.name] ?? `The ${what} cannot be used: ${error.message}`;
}

export function quantile(values, share) {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

export class Voice {
  // `send(bytes, at, silent)` publishes a block.
  constructor({ format, participant, scheme, threshold, send }) {
    this.form = FORMATS[format];
    this.settings = { format, participant, scheme, threshold };
    this.send = send;
    this.suppress = false;
    this.sent = 0;
    this.silent = 0;
    this.suppressed = 0;
    this.level = 0;
    this.speakers = new Map();
    this.divisor = 1;
    this.overflows = 0;
    this.malformed = 0;
    this.context = null;
  }

  async open() {
    if (this.context) return;
    this.opening ??= (async () => {
      const context = new AudioContext({ sampleRate: this.form.rateHz, latencyHint: "interactive" });
      await context.audioWorklet.addModule("capture.js");
      await context.audioWorklet.addModule("playback.js");
      this.context = context;
    })();
    await this.opening;
  }

  async startCapture(processing) {
    await this.open();
    await this.context.resume();
    const wanted = { echoCancellation: processing, noiseSuppression: processing, autoGainControl: processing };
    this.stream = await navigator.mediaDevices.getUserMedia({ audio: wanted });
    for (const track of this.stream.getTracks()) track.onended = () => this.onGone?.();
    this.capture = new AudioWorkletNode(this.context, "capture", { numberOfOutputs: 0, processorOptions: this.settings });
    this.capture.port.onmessage = ({ data }) => this.captured(data);
    this.context.createMediaStreamSource(this.stream).connect(this.capture);
  }

  stopCapture() {
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.capture?.port.postMessage({ end: true });
    this.capture?.disconnect();
    this.stream = this.capture = null;
    this.level = 0;
  }

  captured({ bytes, silent, level, at }) {
    this.level = level;
    this.silent += silent ? 1 : 0;
    if (silent && this.suppress) {
      this.suppressed += 1;
      return;
    }
    this.sent += 1;
    this.send(bytes, at, silent);
  }

  async startPlayback() {
    await this.open();
    this.playback = new AudioWorkletNode(this.context, "playback", {
      numberOfInputs: 0, outputChannelCount: [1], processorOptions: { ...this.settings, bounds: {} },
    });
    this.playback.port.onmessage = ({ data }) => this.told(data);
    this.playback.connect(this.context.destination);
    await this.context.resume();
  }

  stopPlayback() {
    this.playback?.port.postMessage({ end: true });
    this.playback?.disconnect();
    this.playback = null;
    this.speakers.clear();
  }

  play(bytes, at) {
    this.playback?.port.postMessage({ block: bytes, at });
  }

  set(settings) {
    Object.assign(this.settings, settings);
    this.capture?.port.postMessage(settings);
    this.playback?.port.postMessage(settings);
  }

  told(data) {
    if (data.mixed) {
      this.wanted?.(data.mixed);
      return;
    }
    this.divisor = data.divisor;
    this.overflows = data.overflows;
    this.malformed = data.malformed;
    const here = new Set();
    for (const said of data.speakers) {
      here.add(said.participant);
      const delays = [...(this.speakers.get(said.participant)?.delays ?? []), ...said.delays].slice(-DELAYS);
      this.speakers.set(said.participant, { ...said, delays });
    }
    for (const participant of this.speakers.keys()) if (!here.has(participant)) this.speakers.delete(participant);
  }

  // The last second of what was played.
  mixed() {
    return new Promise((resolve) => {
      this.wanted = resolve;
      this.playback.port.postMessage({ spectrum: true });
    });
  }
}
