// node together_vectors.mjs TOGETHER_JS < cases: does with page/together.js what Python does, and prints what came of it.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const together = await import(pathToFileURL(process.argv[2]));
const cases = JSON.parse(readFileSync(0, "utf8"));

const board = new together.Board();
for (const action of cases.actions) board.take(together.readDrawingUntrusted(together.encode(action)));
const chat = new together.Chat();
const taken = cases.lines.map((line) => chat.take(together.readLineUntrusted(together.encode(line))));
const game = new together.Game(cases.start);
const states = cases.shots.map(([x, y, shot, ms]) => {
  game.aim(x, y);
  game.fire(shot, ms);
  return game.state(ms);
});
const readers = { drawing: together.readDrawingUntrusted, line: together.readLineUntrusted, control: together.readControlUntrusted };
const refused = cases.values.map(([reader, text]) => {
  try {
    readers[reader](new TextEncoder().encode(text));
    return false;
  } catch (error) {
    if (!(error instanceof together.BadValue)) throw error;
    return true;
  }
});
process.stdout.write(
  JSON.stringify({
    targets: cases.targets.map(([seed, hits, ms]) => Object.values(together.target(seed, hits, ms))),
    things: board.things().map(({ id, n }) => [id, n]),
    undoable: board.undoable(1),
    taken,
    lines: chat.lines().map(({ text }) => text),
    states,
    refused,
  }),
);
