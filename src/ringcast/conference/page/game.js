// The game on the screen. Whoever starts it owns it: moves the sight and decides the shots; the others fire.
import { EXTENT, Game, HIT, SECONDS, SHOTS, Table, target } from "./together.js";

const TELL_MS = 100;
const STEP = 250; // of a key

export class GameView {
  // `publish(value)` sends on the control tag; `nameOf(participant)` is how others are called.
  constructor({ canvas, startButton, fireButton, say, participant, publish, nameOf }) {
    Object.assign(this, { canvas, startButton, fireButton, say, participant, publish, nameOf });
    this.table = new Table();
    this.game = null; // mine, when I own one
    this.shots = 0;
    this.heard = 0;
    startButton.addEventListener("click", () => this.startOne());
    fireButton.addEventListener("click", () => this.fire());
    canvas.addEventListener("pointermove", (event) => this.game && this.aim((event.offsetX / canvas.clientWidth) * EXTENT, (event.offsetY / canvas.clientHeight) * EXTENT));
    canvas.addEventListener("click", () => this.fire());
    canvas.addEventListener("keydown", (event) => this.key(event));
    setInterval(() => this.tick(), TELL_MS);
  }

  startOne() {
    if (this.table.running(Date.now())) {
      this.say(`A game is running, started by ${this.nameOf(this.table.start.id)}. A second one can start when it is over.`);
      return;
    }
    const random = () => Math.floor(Math.random() * 2 ** 32);
    const start = { do: "start", id: this.participant, game: random(), seed: random(), at: Date.now(), seconds: SECONDS, shots: SHOTS };
    this.table.started(start, Date.now());
    this.own(start);
    this.publish(start);
  }

  own(start) {
    this.game = new Game(start);
    this.began = performance.now();
  }

  fire() {
    const { start } = this.table;
    if (!this.table.running(Date.now()) || start.id === this.participant) return;
    this.publish({ do: "fire", id: this.participant, game: start.game, n: this.shots++ });
  }

  aim(x, y) {
    this.game.aim(x, y);
  }

  key(event) {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (way && this.game) this.aim(this.game.sight.x + way[0] * STEP, this.game.sight.y + way[1] * STEP);
    else if (event.key === "Enter" || event.key === " ") this.fire();
    else return;
    event.preventDefault();
  }

  take(value) {
    const now = Date.now();
    if (value.do === "start") {
      if (!this.table.started(value, now) && value.id !== this.participant) this.say(`${this.nameOf(value.id)} tried to start a second game; it counts for nothing.`);
      // My own start crossed an earlier one: that one counts.
      if (this.game && this.table.start.game !== this.game.start.game) this.game = null;
    } else if (value.do === "fire" && this.game) {
      this.game.fire(value, this.elapsed());
    } else if (value.do === "state" && this.table.told(value, now)) {
      this.heard = performance.now();
    }
  }

  elapsed() {
    return Math.floor(performance.now() - this.began);
  }

  tick() {
    if (this.game) {
      const state = this.game.state(this.elapsed());
      this.publish(state);
      this.table.told(state, Date.now());
      this.heard = performance.now();
      if (state.over) this.game = null;
    }
    this.show();
  }

  show() {
    const now = Date.now();
    const running = this.table.running(now);
    const { start, state } = this.table;
    this.startButton.disabled = false;
    this.fireButton.disabled = !running || start.id === this.participant;
    const context = this.canvas.getContext("2d");
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    if (!start) return;
    const owner = start.id === this.participant ? "You move" : `${this.nameOf(start.id)} moves`;
    if (!running) {
      this.word(state?.over ? `The game is over: ${state.score} hits with ${start.shots - state.shots} shots.` : `The game is over: ${this.nameOf(start.id)} has left.`);
      return;
    }
    const elapsed = (state?.elapsed ?? 0) + (performance.now() - this.heard);
    const last = state?.last_by ? ` Last shot: ${this.nameOf(state.last_by)}, ${state.last_hit ? "a hit" : "missed"}.` : "";
    this.word(`${owner} the sight. Score ${state?.score ?? 0}, ${state?.shots ?? start.shots} shots and ${Math.max(0, Math.ceil(start.seconds - elapsed / 1000))} s left.${last}`);
    const scale = (spot) => [(spot.x / EXTENT) * this.canvas.width, (spot.y / EXTENT) * this.canvas.height];
    const radius = (HIT / EXTENT) * this.canvas.width;
    const [tx, ty] = scale(target(start.seed, state?.score ?? 0, Math.floor(elapsed)));
    context.fillStyle = "#ff5050";
    context.beginPath();
    context.arc(tx, ty, radius / 2, 0, 7);
    context.fill();
    const [x, y] = scale(state ?? { x: EXTENT / 2, y: EXTENT / 2 });
    context.strokeStyle = "#ffffff";
    context.lineWidth = 2;
    context.beginPath();
    context.arc(x, y, radius, 0, 7);
    context.moveTo(x - radius, y);
    context.lineTo(x + radius, y);
    context.moveTo(x, y - radius);
    context.lineTo(x, y + radius);
    context.stroke();
  }

  word(text) {
    const place = document.querySelector("#game-word");
    if (place.textContent !== text) place.textContent = text;
  }
}
