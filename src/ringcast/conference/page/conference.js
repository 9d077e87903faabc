// The page: joins a conference, lets people choose what they publish and receive, and shows how it goes.
import { BoardView } from "./board.js";
import { GameView } from "./game.js";
import { Link } from "./link.js";
import { addPerson } from "./people.js";
import { Camera, HEIGHT, Tile, WIDTH } from "./pictures.js";
import { BadValue, Chat, MOST_TEXT, Roll, SAID_EVERY_MS, encode, readControlUntrusted, readDrawingUntrusted, readLineUntrusted } from "./together.js";
import { Thin } from "./thin.js";
import { Voice, explain } from "./voice.js";

const $ = (selector) => document.querySelector(selector);
const settings = await (await fetch("settings.json")).json();
const participant = crypto.getRandomValues(new Uint32Array(1))[0];
const order = settings.media.map((medium) => medium.name); // the most important first
const media = Object.fromEntries(settings.media.map((medium) => [medium.name, medium]));
const link = new Link(settings.conference, media);
const roll = new Roll();
const chat = new Chat();
const tiles = new Map(); // by participant
const missed = new Map(); // blocks lost on their way to me, by participant
const receives = new Set();
const publishes = new Set();
const SMALL = { size: [WIDTH / 2, HEIGHT / 2], rateHz: 2 };
let me = "";
let lineCount = 0;
const thin = new Thin();
let voices = null; // ids of those I hear; null for all
let talked = 0; // when I was last louder than silence
let saidTalks = false;
let view;
let game;

const nameOf = (id) => (id === participant ? "you" : roll.known.get(id)?.here.name ?? "somebody");

function say(text) {
  $("#word").textContent = text;
  $("#word").hidden = !text;
}

const failed = (error) => say(error.message);

const voice = new Voice({
  format: settings.format, participant, scheme: settings.scheme, threshold: settings.threshold,
  send: (bytes, at, silent) => {
    if (!silent) talked = Date.now();
    link.send("audio", bytes, at, silent);
  },
});
const camera = new Camera((bytes, at) => link.send("video", bytes, at));

// ------------------------------------------------------------------ what comes

function heard(message) {
  if (String(message.publisher.incarnation) === String(link.publishers.get("audio")?.info.incarnation)) return; // my own
  if (message.lost && message.bytes.length >= 8) {
    const whose = new DataView(message.bytes.buffer, message.bytes.byteOffset).getUint32(4, true);
    missed.set(whose, (missed.get(whose) ?? 0) + message.lost);
  }
  voice.play(message.bytes, Number(message.eventNs / 1000000n));
}

function seen(message) {
  const incarnation = String(message.publisher.incarnation);
  const whose = roll.here(Date.now()).find((here) => here.streams?.video === incarnation);
  if (whose && whose.id !== participant) tileOf(whose).show(message.bytes, message.lost);
}

function tileOf({ id, name }) {
  if (!tiles.has(id)) tiles.set(id, new Tile($("#tiles"), name));
  return tiles.get(id);
}

const trusted = (read, take) => (message) => {
  let value;
  try {
    value = read(message.bytes);
  } catch (error) {
    if (error instanceof BadValue) return; // nobody is disturbed by what does not belong here
    throw error;
  }
  take(value);
};

const drawn = trusted(readDrawingUntrusted, (action) => view.take(action));
const written = trusted(readLineUntrusted, (line) => {
  if (line.id === participant) lineCount = Math.max(lineCount, line.n + 1);
  if (chat.take(line)) showChat();
});
const controlled = trusted(readControlUntrusted, (value) => {
  if (value.do === "here" || value.do === "gone") {
    const known = roll.known.has(value.id);
    roll.take(value, Date.now());
    if (value.do === "here" && !known && value.id !== participant) sayHere();
  } else game.take(value);
});

const TAKE = { audio: heard, video: seen, whiteboard: drawn, chat: written, control: controlled };

// ------------------------------------------------------------------ publish and receive

async function receive(medium, wanted) {
  if (!wanted) {
    receives.delete(medium);
    link.unsubscribe(medium);
    if (medium === "audio") voice.stopPlayback();
    if (medium === "video") for (const id of [...tiles.keys()]) dropTile(id);
    return;
  }
  if (medium === "audio") await voice.startPlayback();
  await link.subscribe(medium, subscription(medium), TAKE[medium]);
  receives.add(medium);
  // Late joiners get what was drawn and written before by pull.
  if (medium === "whiteboard" || medium === "chat") for (const message of await link.pull(medium)) TAKE[medium](message);
}

function subscription(medium) {
  const at = order.indexOf(medium);
  const options = { priority: order.length - at, urgency: settings.urgencies[at] };
  if (medium === "video" && isSmall()) Object.assign(options, SMALL);
  if (medium === "audio" && voices) options.only = speaking().filter((one) => voices.includes(one.id)).map((one) => one.streams.audio);
  return options;
}

const isSmall = () => $("#size").value === "small" || ($("#size").value === "auto" && thin.small);
const speaking = () => roll.here(Date.now()).filter((one) => one.id !== participant && one.streams?.audio);

// Subscribe again where the link's thinness changed what comes.
async function adapt(wasSmall) {
  const chosen = thin.choose(speaking(), voices ?? []);
  const changed = JSON.stringify(chosen) !== JSON.stringify(voices);
  voices = chosen;
  if (receives.has("video") && wasSmall !== isSmall()) await link.subscribe("video", subscription("video"), TAKE.video);
  if (receives.has("audio") && changed) await link.subscribe("audio", subscription("audio"), TAKE.audio);
  showThin();
}

link.onPaced = (medium, every) => {
  const wasSmall = isSmall();
  if (every > 1 && (medium === "audio" || medium === "video") && thin.behind(medium, speaking().length, Date.now())) adapt(wasSmall).catch(failed);
};
link.onFailed = (medium, error) => say(`${medium} ended: ${error.message}. Receive it again under Media.`);
voice.onGone = () => say("The microphone has gone away. Publish audio again when it is back.");

function look() {
  const talks = publishes.has("audio") && Date.now() - talked < 1000;
  if (talks !== saidTalks) sayHere();
  const wasSmall = isSmall();
  if (thin.relax(speaking().length, Date.now()) || thin.voices !== null) adapt(wasSmall).catch(failed);
}

async function publish(medium, wanted) {
  if (!wanted) {
    publishes.delete(medium);
    if (medium === "audio") voice.stopCapture();
    if (medium === "video") camera.stop();
    link.unpublish(medium);
    return;
  }
  try {
    if (medium === "audio") await voice.startCapture($("#processing").checked);
    if (medium === "video") await camera.start();
  } catch (error) {
    throw new Error(explain(error, medium === "audio" ? "microphone" : "camera"));
  }
  await link.publish(medium);
  publishes.add(medium);
}

// Who does not receive the whiteboard can look at it now and then.
async function pullBoard() {
  for (const message of await link.pull("whiteboard")) drawn(message);
  view.draw();
}

async function choose(box, act, medium) {
  box.disabled = true;
  try {
    await act(medium, box.checked);
    say("");
  } catch (error) {
    box.checked = !box.checked;
    say(error.message);
  }
  box.disabled = false;
  $("#pull").hidden = receives.has("whiteboard");
  sayHere();
}

function sayHere() {
  if (!me || !link.publishers.has("control")) return;
  saidTalks = publishes.has("audio") && Date.now() - talked < 1000;
  const streams = Object.fromEntries([...link.publishers].map(([medium, publisher]) => [medium, String(publisher.info.incarnation)]));
  link.send("control", encode({ do: "here", id: participant, name: me, publishes: [...publishes], subscribes: [...receives], streams, node: link.session.node, talks: saidTalks }));
}

// ------------------------------------------------------------------ the table of media

function showMedia() {
  const body = $("#media tbody");
  body.replaceChildren();
  for (const medium of order) {
    const row = body.insertRow();
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = medium === "control" ? "game" : medium;
    row.append(head);
    for (const [set, act, verb] of [[publishes, publish, "publish"], [receives, receive, "receive"]]) {
      const box = document.createElement("input");
      box.type = "checkbox";
      box.id = `${verb}-${medium}`;
      box.setAttribute("aria-label", `${verb} ${head.textContent}`);
      box.checked = set.has(medium);
      // Who is here is said on the control tag: it stays.
      box.disabled = medium === "control";
      box.addEventListener("change", () => choose(box, act, medium));
      row.insertCell().append(box);
    }
    row.insertCell().textContent = { delay: "low delay", rate: "a steady rate", reliable: "that nothing is lost" }[media[medium].quality];
    const up = document.createElement("button");
    up.type = "button";
    up.textContent = "Up";
    up.setAttribute("aria-label", `${head.textContent} counts more`);
    up.disabled = order.indexOf(medium) === 0;
    up.addEventListener("click", () => moveUp(medium));
    row.insertCell().append(up);
  }
  $("#force").textContent =
    `When my link is thin, the gateway sends ${order.map((name) => (name === "control" ? "game" : name)).join(" before ")}. ` +
    `Other nodes send them here as ${order.map((name, at) => `${name === "control" ? "game" : name} ${settings.urgencies[at]}`).join(", ")}.`;
}

async function moveUp(medium) {
  const at = order.indexOf(medium);
  [order[at - 1], order[at]] = [order[at], order[at - 1]];
  showMedia();
  for (const name of receives) await link.subscribe(name, subscription(name), TAKE[name]);
}

// ------------------------------------------------------------------ what is shown

function dropTile(id) {
  tiles.get(id)?.remove();
  tiles.delete(id);
}

function showPeople() {
  const here = roll.here(Date.now());
  const body = $("#people tbody");
  body.replaceChildren();
  for (const one of here) {
    addPerson(body, one, {
      mine: one.id === participant, speaker: voice.speakers.get(one.id), tile: tiles.get(one.id), missed: missed.get(one.id) ?? 0, voice,
      shows: publishes.has("video"),
    });
  }
  for (const id of tiles.keys()) if (!here.some((one) => one.id === id && one.publishes.includes("video"))) dropTile(id);
  voice.set({ publishers: here.filter((one) => one.publishes.includes("audio")).length });
  $("#mix").textContent =
    `Mixed ${voice.settings.scheme === "speakers" ? `by speakers, R = ${voice.divisor}` : `by publishers, divided by ${voice.divisor}`}. ` +
    `Streams lost on their way to me: audio ${link.subscribers.get("audio")?.lost ?? 0}, video ${link.subscribers.get("video")?.lost ?? 0}. ` +
    `I sent ${voice.sent} blocks, ${voice.silent} were silence, ${voice.suppressed} of them were not sent.`;
}

function showThin() {
  const words = [];
  if (voices) words.push(`you hear ${voices.map(nameOf).join(" and ")} alone`);
  if (isSmall()) words.push(`pictures come as ${SMALL.size.join("x")}, at most ${SMALL.rateHz} a second`);
  const why = $("#size").value === "small" && !thin.small ? "As you chose" : "Your link is thin; silence is left out first";
  $("#thin").textContent = words.length ? `${why}: ${words.join("; ")}.` : "";
}

async function showProxy() {
  if (!receives.has("video")) {
    $("#proxy").textContent = "";
    return;
  }
  const rows = await link.session.channels();
  const own = rows.filter((row) => row.tag === link.tagName("video") && row.direction === "in");
  const places = [...new Set(own.map((row) => `${row.node}${row.size ? ` (${row.size.join("x")})` : ""}`))];
  const scaled = isSmall() ? `, scaled to ${SMALL.size.join("x")}` : "";
  $("#proxy").textContent = places.length
    ? `Pictures of other nodes come to node ${link.session.node} from ${places.join(", ")}${scaled}.`
    : `Pictures are read on node ${link.session.node}${isSmall() ? `, where a proxy scales them to ${SMALL.size.join("x")}` : ""}.`;
}

function showChat() {
  const list = $("#lines");
  list.replaceChildren(...chat.lines().map((line) => {
    const item = document.createElement("li");
    const name = document.createElement("b");
    name.textContent = `${line.name}: `;
    item.append(name, line.text);
    return item;
  }));
  list.scrollTop = list.scrollHeight;
}

// ------------------------------------------------------------------ joining

function stateChanged(state) {
  $("#connection").textContent = state === "lost" ? "the connection is away; trying again" : "connected";
  $("#connection").classList.toggle("away", state === "lost");
  if (state !== "lost") sayHere();
}

async function join(event) {
  event.preventDefault();
  me = $("#name").value.trim().slice(0, 60);
  if (!me) return;
  $("#join button").disabled = true;
  try {
    await link.open(stateChanged);
    $("#where").textContent = `${settings.conference}, as ${me}, on node ${link.session.node}`;
    view = new BoardView({
      canvas: $("#board"), tool: $("#tool"), colour: $("#colour"), width: $("#width"), text: $("#text"), participant,
      publish: (action) => link.send("whiteboard", encode(action)),
      allowed: () => publishes.has("whiteboard") || (say("You do not publish on the whiteboard: tick it under Media."), false),
      changed: (count) => { $("#board-count").textContent = `${count} things on the board`; },
    });
    game = new GameView({
      canvas: $("#field"), startButton: $("#start"), fireButton: $("#fire"), say, participant,
      publish: (value) => link.send("control", encode(value)), nameOf,
    });
    for (const medium of ["control", "whiteboard", "chat"]) {
      await publish(medium, true);
      await receive(medium, true);
    }
    for (const medium of ["audio", "video"]) await receive(medium, true);
  } catch (error) {
    say(`Cannot join: ${error.message}`);
    $("#join button").disabled = false;
    return;
  }
  $("#join").hidden = true;
  $("#inside").hidden = false;
  showMedia();
  view.draw();
  sayHere();
  setInterval(sayHere, SAID_EVERY_MS);
  setInterval(showPeople, 500);
  setInterval(look, 500);
  setInterval(() => showProxy().catch(() => {}), 3000);
}

$("#scheme").value = settings.scheme;
$("#threshold").value = settings.threshold;
$("#join").addEventListener("submit", join);
$("#join button").disabled = false;
$("#connection").textContent = "ready";
$("#scheme").addEventListener("change", () => voice.set({ scheme: $("#scheme").value }));
$("#threshold").addEventListener("change", () => voice.set({ threshold: Number($("#threshold").value) || 0 }));
$("#suppress").addEventListener("change", () => { voice.suppress = $("#suppress").checked; });
$("#picture").addEventListener("change", () => { camera.kind = $("#picture").value; });
$("#size").addEventListener("change", async () => {
  if (receives.has("video")) await link.subscribe("video", subscription("video"), TAKE.video);
  showThin();
});
$("#undo").addEventListener("click", () => view.undo());
$("#pull").addEventListener("click", () => pullBoard().catch(failed));
$("#board-text").addEventListener("submit", (event) => {
  event.preventDefault();
  view.writeText($("#text").value);
  $("#text").value = "";
});
$("#chat").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("#line").value.trim();
  if (!text) return;
  if ([...text].length > MOST_TEXT) {
    say(`A line of chat has at most ${MOST_TEXT} characters; this one has ${[...text].length}.`);
    return;
  }
  if (!link.send("chat", encode({ id: participant, n: lineCount++, at: Date.now(), name: me, text }))) {
    say("You do not publish on the chat: tick it under Media.");
    return;
  }
  say("");
  $("#line").value = "";
});
$("#line").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    $("#chat").requestSubmit();
  }
});
addEventListener("pagehide", () => {
  if (me) link.send("control", encode({ do: "gone", id: participant }));
});

// For whoever looks from outside: a test, or the browser's console.
globalThis.conference = { link, voice, camera, roll, chat, tiles, participant, receives, publishes, thin, get voices() { return voices; }, get view() { return view; }, get game() { return game; } };
