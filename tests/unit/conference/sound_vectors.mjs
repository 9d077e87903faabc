// node sound_vectors.mjs SOUND_JS < vectors: does with page/sound.js what the vectors say, and prints what came of it.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const sound = await import(pathToFileURL(process.argv[2]));
const vectors = JSON.parse(readFileSync(0, "utf8"));

const signal = (runs) => Int32Array.from(runs.flatMap(([value, times]) => Array(times).fill(value)));

const silence = vectors.silence.map((one) => {
  const form = sound.FORMATS[one.format];
  const samples = signal(one.signal);
  return { level: sound.level(form, samples), silent: sound.isSilent(form, samples, one.threshold) };
});

const mixing = vectors.mixing.map((one) => {
  const mixer = new sound.MIXERS[one.scheme](sound.FORMATS[one.format]);
  return one.blocks.map((block) => {
    const mixed = mixer.mix(block.streams.map(signal), one.publishers);
    return { mixed: Array.from(mixed), divisor: mixer.divisor };
  });
});

const buffers = vectors.buffers.map((one) => {
  const { max_s: maxS, max_t: maxT, start, settle } = one.options;
  const buffer = new sound.SpeakerBuffer({ maxS, maxT, start, settle });
  const taken = [];
  for (const [what, number, silent] of one.steps) {
    if (what === "put") buffer.put({ number, silent });
    else taken.push(buffer.take()?.number ?? null);
  }
  return {
    taken,
    silence_discarded: buffer.silenceDiscarded,
    talk_discarded: buffer.talkDiscarded,
    late: buffer.late,
    empty: buffer.empty,
  };
});

const blocks = (vectors.blocks ?? []).map((one) => {
  const form = sound.FORMATS[one.format];
  const samples = sound.fromFloats(form, Float32Array.from(one.floats));
  const bytes = sound.pack(form, one.participant, one.number, samples, one.silent);
  const back = sound.unpackUntrusted(bytes);
  return { hex: Buffer.from(bytes).toString("hex"), samples: Array.from(back.samples), participant: back.participant, number: back.number, silent: back.silent };
});

process.stdout.write(JSON.stringify({ silence, mixing, buffers, blocks }));
