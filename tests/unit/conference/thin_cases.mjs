// node thin_cases.mjs THIN_JS: what a page behind a thin link gets, step by step.
import { pathToFileURL } from "node:url";

const { Thin } = await import(pathToFileURL(process.argv[2]));
const thin = new Thin();
const people = [{ id: 1, talks: false }, { id: 2, talks: true }, { id: 3, talks: true }, { id: 4, talks: false }];
const steps = [];
const note = (what) => steps.push([what, thin.small, thin.voices, thin.choose(people, [])]);

note(thin.relax(4, 0));
note(thin.behind("video", 4, 1000));
note(thin.behind("audio", 4, 2000));
note(thin.behind("audio", 4, 3000));
note(thin.behind("audio", 4, 4000)); // one voice stays
note(thin.relax(4, 18000));
note(thin.relax(4, 19001)); // fifteen seconds without trouble: one voice more
note(thin.behind("audio", 4, 20000)); // too much: the next try comes later
note(thin.relax(4, 40000));
note(thin.relax(4, 50001));
const kept = thin.choose(people, [3, 1]);
note(thin.relax(4, 80002));
note(thin.relax(4, 110003));
note(thin.relax(4, 140004));
process.stdout.write(JSON.stringify({ steps, kept }));
