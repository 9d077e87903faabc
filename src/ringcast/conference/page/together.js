// Board, chat, roll and game. Pure: no DOM, no clock, no network. The same as `conference/presence.py` and
// `tests/conference_model/` in Python; what everybody sees depends on which values came, not on their order.

export class BadValue extends Error {}

const isNumber = (value) => Number.isInteger(value) && value >= 0 && value <= 0xffffffff;
const isCoordinate = (value) => Number.isInteger(value) && value >= 0 && value <= EXTENT;
const isText = (value, most, least = 0) => typeof value === "string" && [...value].length <= most && value.length >= least;

function parse(bytes, what) {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new BadValue(`${what} is not JSON`);
  }
}

function check(good, what) {
  if (!good) throw new BadValue(`not ${what}`);
}

export const encode = (value) => new TextEncoder().encode(JSON.stringify(value));

// ------------------------------------------------------------------ drawing

export const EXTENT = 10000;
export const MOST_POINTS = 1024;
export const MOST_BOARD_TEXT = 500;
const SHAPES = ["stroke", "line", "box", "ellipse", "text"];

export function readDrawingUntrusted(bytes) {
  const value = parse(bytes, "what was drawn");
  check(value && isNumber(value.id) && isNumber(value.n) && Number.isInteger(value.at), "something drawn");
  if (value.do === "undone") check(isNumber(value.of), "an undo");
  else {
    const { points, colour = "#202020", width = 3, text = "" } = value;
    check(value.do === "drawn" && SHAPES.includes(value.shape), "a shape");
    check(Array.isArray(points) && points.length >= 1 && points.length <= MOST_POINTS, "points of a shape");
    check(points.every((point) => Array.isArray(point) && point.length === 2 && point.every(isCoordinate)), "points within the board");
    check(/^#[0-9a-f]{6}$/.test(colour) && Number.isInteger(width) && width >= 1 && width <= 60, "a pen");
    check(isText(text, MOST_BOARD_TEXT), `a text of at most ${MOST_BOARD_TEXT} characters`);
    return { ...value, colour, width, text };
  }
  return value;
}

export class Board {
  constructor() {
    this.drawn = new Map();
    this.undone = new Set();
  }

  take(action) {
    if (action.do === "undone") this.undone.add(`${action.id} ${action.of}`);
    else if (!this.drawn.has(`${action.id} ${action.n}`)) this.drawn.set(`${action.id} ${action.n}`, action);
  }

  things() {
    const left = [...this.drawn].filter(([key]) => !this.undone.has(key)).map(([, thing]) => thing);
    return left.sort((a, b) => a.at - b.at || a.id - b.id || a.n - b.n);
  }

  undoable(participant) {
    const own = this.things().filter((thing) => thing.id === participant).map((thing) => thing.n);
    return own.length ? Math.max(...own) : null;
  }
}

// ------------------------------------------------------------------ writing

export const MOST_TEXT = 2000;
export const MOST_NAME = 60;
const MOST_LINES = 1000;

export function readLineUntrusted(bytes) {
  const value = parse(bytes, "a line of text");
  check(value && isNumber(value.id) && isNumber(value.n) && Number.isInteger(value.at), "a line of text");
  check(isText(value.name, MOST_NAME) && isText(value.text, MOST_TEXT, 1), `a text of at most ${MOST_TEXT} characters`);
  return value;
}

export class Chat {
  constructor() {
    this.known = new Map();
  }

  take(line) {
    const key = `${line.id} ${line.n}`;
    if (this.known.has(key)) return false;
    this.known.set(key, line);
    if (this.known.size > MOST_LINES) {
      const { id, n } = this.lines()[0];
      this.known.delete(`${id} ${n}`);
    }
    return true;
  }

  lines() {
    return [...this.known.values()].sort((a, b) => a.at - b.at || a.id - b.id || a.n - b.n);
  }
}

// ------------------------------------------------------------------ who is here

export const AWAY_MS = 6000;
export const SAID_EVERY_MS = 2000;
const MEDIA = ["audio", "video", "whiteboard", "chat", "control"];
const areMedia = (value) => Array.isArray(value) && value.every((medium) => MEDIA.includes(medium));
const isCount = (value) => Number.isInteger(value) && value >= 0;

const CONTROL = {
  here: (v) => isText(v.name, MOST_NAME, 1) && areMedia(v.publishes) && areMedia(v.subscribes) && typeof (v.streams ?? {}) === "object" && typeof (v.talks ?? false) === "boolean",
  gone: () => true,
  start: (v) => isNumber(v.game) && isNumber(v.seed) && Number.isInteger(v.at) && v.seconds >= 1 && v.seconds <= 600 && v.shots >= 1 && v.shots <= 1000,
  fire: (v) => isNumber(v.game) && isNumber(v.n),
  state: (v) => isNumber(v.game) && isCount(v.elapsed) && isCoordinate(v.x) && isCoordinate(v.y) && isCount(v.score) && isCount(v.shots) && typeof v.over === "boolean",
};

export function readControlUntrusted(bytes) {
  const value = parse(bytes, "a word on the control tag");
  check(value && isNumber(value.id) && Object.hasOwn(CONTROL, value.do) && CONTROL[value.do](value), "something that belongs on the control tag");
  return value;
}

export class Roll {
  constructor() {
    this.known = new Map();
  }

  take(value, nowMs) {
    if (value.do === "gone") this.known.delete(value.id);
    else this.known.set(value.id, { here: value, at: nowMs });
  }

  here(nowMs) {
    for (const [id, { at }] of this.known) if (nowMs - at >= AWAY_MS) this.known.delete(id);
    return [...this.known.values()].map(({ here }) => here).sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.id - b.id));
  }
}

// ------------------------------------------------------------------ playing

export const LEG_MS = 1000;
export const HIT = 700;
export const DOWN_MS = 500; // so long after a hit nobody hits again
export const SHOTS = 20;
export const SECONDS = 30;

function mixed(word) {
  word ^= word >>> 16;
  word = Math.imul(word, 0x85ebca6b);
  word ^= word >>> 13;
  word = Math.imul(word, 0xc2b2ae35);
  return (word ^ (word >>> 16)) >>> 0;
}

function corner(seed, hits, leg) {
  const word = mixed((seed + Math.imul(0x9e3779b9, hits + 1) + Math.imul(0x85ebca6b, leg + 1)) >>> 0);
  return [word % EXTENT, mixed(word) % EXTENT];
}

export function target(seed, hits, elapsedMs) {
  const leg = Math.floor(Math.max(0, elapsedMs) / LEG_MS);
  const into = Math.max(0, elapsedMs) % LEG_MS;
  const [x0, y0] = corner(seed, hits, leg);
  const [x1, y1] = corner(seed, hits, leg + 1);
  return { x: x0 + Math.trunc(((x1 - x0) * into) / LEG_MS), y: y0 + Math.trunc(((y1 - y0) * into) / LEG_MS) };
}

// The owner's side: decides each shot, in the order in which shots come.
export class Game {
  constructor(start) {
    this.start = start;
    this.sight = { x: EXTENT / 2, y: EXTENT / 2 };
    this.score = 0;
    this.shots = start.shots;
    this.lastBy = 0;
    this.lastHit = false;
    this.fired = new Set();
    this.upMs = 0;
  }

  over(elapsedMs) {
    return this.shots === 0 || elapsedMs >= this.start.seconds * 1000;
  }

  aim(x, y) {
    const held = (value) => Math.min(EXTENT, Math.max(0, Math.round(value)));
    this.sight = { x: held(x), y: held(y) };
  }

  fire(shot, elapsedMs) {
    const key = `${shot.id} ${shot.n}`;
    if (this.fired.has(key) || shot.game !== this.start.game || shot.id === this.start.id || this.over(elapsedMs)) return false;
    this.fired.add(key);
    this.shots -= 1;
    const spot = target(this.start.seed, this.score, elapsedMs);
    const near = (spot.x - this.sight.x) ** 2 + (spot.y - this.sight.y) ** 2 <= HIT ** 2;
    const hit = near && elapsedMs >= this.upMs;
    if (hit) {
      this.score += 1;
      this.upMs = elapsedMs + DOWN_MS;
    }
    this.lastBy = shot.id;
    this.lastHit = hit;
    return hit;
  }

  state(elapsedMs) {
    return {
      do: "state", id: this.start.id, game: this.start.game, elapsed: elapsedMs, x: this.sight.x, y: this.sight.y, score: this.score,
      shots: this.shots, over: this.over(elapsedMs), last_by: this.lastBy, last_hit: this.lastHit,
    };
  }
}

// Everybody's side: which game counts.
export class Table {
  static PATIENCE_MS = 3000;

  constructor() {
    this.start = null;
    this.state = null;
    this.heardMs = 0;
  }

  running(nowMs) {
    if (this.start === null || this.state?.over) return false;
    return nowMs - this.heardMs < Table.PATIENCE_MS;
  }

  started(start, nowMs) {
    if (this.running(nowMs)) {
      if (start.game === this.start.game) return true;
      const later = start.at - this.start.at || start.id - this.start.id;
      if (this.state !== null || later >= 0) return false;
    }
    this.start = start;
    this.state = null;
    this.heardMs = nowMs;
    return true;
  }

  told(state, nowMs) {
    if (this.start === null || state.game !== this.start.game || state.id !== this.start.id) return false;
    this.state = state;
    this.heardMs = nowMs;
    return true;
  }
}
