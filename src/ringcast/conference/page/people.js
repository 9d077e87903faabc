// The table of people: what is known of each who is here.
import { FPS } from "./pictures.js";
import { quantile } from "./voice.js";

const ms = (value) => (value === null ? "" : `${Math.round(value)} ms`);

/** Add the row of `one`. `speaker` and `tile` are what is heard and seen of them, if anything; `shows`: I publish pictures. */
export function addPerson(body, one, { mine, speaker, tile, missed, voice, shows }) {
  const loud = mine ? voice.level : speaker?.level ?? 0;
  const delays = speaker?.delays ?? [];
  const row = body.insertRow();
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = one.name + (mine ? " (you)" : "");
  head.className = loud > voice.settings.threshold ? "talks" : "";
  row.append(head);
  const meter = document.createElement("meter");
  meter.max = 64;
  meter.value = loud;
  meter.setAttribute("aria-label", `level of ${one.name}: ${Math.round(loud)}`);
  row.insertCell().append(meter);
  const middle = quantile(delays, 0.5);
  row.insertCell().textContent = ms(middle);
  row.insertCell().textContent = delays.length ? ms(quantile(delays, 0.95) - quantile(delays, 0.05)) : "";
  const late = (speaker?.late ?? 0) + (speaker?.talkDiscarded ?? 0);
  row.insertCell().textContent = speaker || tile ? `${missed}, late ${late}, pictures ${tile?.lost ?? 0}` : "";
  row.insertCell().textContent = mine ? `${voice.suppressed} of ${voice.silent}` : speaker ? `${speaker.silenceDiscarded} of ${speaker.silent}` : "";
  row.insertCell().textContent = mine ? (shows ? String(FPS) : "") : tile ? tile.fps().toFixed(1) : "";
  row.insertCell().textContent = tile?.size ?? "";
  row.insertCell().textContent = one.node ?? "";
}
