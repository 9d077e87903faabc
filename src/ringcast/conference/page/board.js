// The whiteboard on the screen: pointer and keyboard to shapes, shapes to the canvas.
import { Board, EXTENT, MOST_POINTS } from "./together.js";

const STEP = 150; // of a key

export class BoardView {
  // `publish(action)` sends an action, which comes back like everybody's; `allowed()` says whether I may draw.
  constructor({ canvas, tool, colour, width, text, participant, publish, allowed, changed }) {
    Object.assign(this, { canvas, tool, colour, width, text, participant, publish, allowed, changed });
    this.board = new Board();
    this.count = 0;
    this.current = null;
    this.cursor = [EXTENT / 2, EXTENT / 2];
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.begin(this.point(event));
    });
    canvas.addEventListener("pointermove", (event) => this.current && this.go(this.point(event)));
    canvas.addEventListener("pointerup", () => this.finish());
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  take(action) {
    this.board.take(action);
    if (action.id === this.participant) this.count = Math.max(this.count, action.n + 1);
    this.draw();
    this.changed(this.board.things().length);
  }

  undo() {
    const of = this.board.undoable(this.participant);
    if (of !== null && this.allowed()) this.publish({ do: "undone", id: this.participant, n: this.count++, at: Date.now(), of });
  }

  writeText(text) {
    if (text && this.allowed()) this.put("text", [this.cursor], text);
  }

  point({ offsetX, offsetY }) {
    const held = (value) => Math.min(EXTENT, Math.max(0, Math.round(value)));
    return [held((offsetX / this.canvas.clientWidth) * EXTENT), held((offsetY / this.canvas.clientHeight) * EXTENT)];
  }

  begin(point) {
    this.cursor = point;
    if (this.tool.value === "text") this.draw();
    else if (this.allowed()) this.current = [point];
  }

  go(point) {
    this.cursor = point;
    if (this.tool.value === "stroke") {
      if (this.current.length < MOST_POINTS) this.current.push(point);
    } else this.current = [this.current[0], point];
    this.draw();
  }

  finish() {
    if (this.current) this.put(this.tool.value, this.current);
    this.current = null;
  }

  put(shape, points, text = "") {
    const width = Math.min(60, Math.max(1, Math.round(Number(this.width.value)) || 3));
    this.publish({ do: "drawn", id: this.participant, n: this.count++, at: Date.now(), shape, points, colour: this.colour.value, width, text });
  }

  key(event) {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (way) {
      const held = (value) => Math.min(EXTENT, Math.max(0, value));
      const point = [held(this.cursor[0] + way[0] * STEP), held(this.cursor[1] + way[1] * STEP)];
      if (this.current) this.go(point);
      else this.cursor = point;
    } else if (event.key === "Enter") {
      if (this.current) this.finish();
      else this.begin(this.cursor);
    } else if (event.key === "Escape") this.current = null;
    else return;
    event.preventDefault();
    this.draw();
  }

  draw() {
    const context = this.canvas.getContext("2d");
    const scale = [this.canvas.width / EXTENT, this.canvas.height / EXTENT];
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    for (const thing of this.board.things()) paint(context, thing, scale);
    if (this.current) paint(context, { shape: this.tool.value, points: this.current, colour: this.colour.value, width: 2, text: "" }, scale);
    const [x, y] = [this.cursor[0] * scale[0], this.cursor[1] * scale[1]];
    context.strokeStyle = "#808080";
    context.lineWidth = 1;
    context.strokeRect(x - 4, y - 4, 8, 8);
  }
}

function paint(context, { shape, points, colour, width, text }, [sx, sy]) {
  const at = points.map(([x, y]) => [x * sx, y * sy]);
  const [[x0, y0], [x1, y1]] = [at[0], at[at.length - 1]];
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = width;
  context.lineCap = context.lineJoin = "round";
  context.beginPath();
  if (shape === "text") {
    context.font = `${12 + 2 * width}px sans-serif`;
    context.fillText(text, x0, y0);
    return;
  }
  if (shape === "box") context.rect(Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0));
  else if (shape === "ellipse") context.ellipse((x0 + x1) / 2, (y0 + y1) / 2, Math.abs(x1 - x0) / 2, Math.abs(y1 - y0) / 2, 0, 0, 7);
  else for (const [x, y] of shape === "line" ? [at[0], at[at.length - 1]] : at) context.lineTo(x, y);
  context.stroke();
}
