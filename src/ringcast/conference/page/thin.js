// How a page behind a thin link gets less: pictures smaller and fewer, then fewer voices; and more again when it can.
// Pure: time is an argument. Silence is left out before any of this, by the gateway.

const TRY_MS = 15000; // so long without trouble, and a little more is tried
const MOST_TRY_MS = 120000;
const SOON_MS = 8000;

export class Thin {
  constructor() {
    this.small = false; // pictures
    this.voices = null; // how many; null for all
    this.tryMs = TRY_MS;
    this.changedMs = 0;
    this.relaxedMs = -Infinity;
  }

  // The gateway leaves out messages of a medium. Returns whether something is to change.
  behind(medium, voicesNow, nowMs) {
    if (nowMs - this.relaxedMs < SOON_MS) this.tryMs = Math.min(MOST_TRY_MS, 2 * this.tryMs);
    const before = `${this.small} ${this.voices}`;
    this.small = true;
    if (medium === "audio") this.voices = Math.max(1, Math.floor((this.voices ?? voicesNow) / 2));
    this.changedMs = nowMs;
    return `${this.small} ${this.voices}` !== before;
  }

  // Now and then: a little more, when nothing was left out for a while. Voices come back before pictures.
  relax(voicesNow, nowMs) {
    if ((!this.small && this.voices === null) || nowMs - this.changedMs < this.tryMs) return false;
    if (this.voices === null) this.small = false;
    else this.voices = this.voices + 1 >= voicesNow ? null : this.voices + 1;
    this.changedMs = this.relaxedMs = nowMs;
    return true;
  }

  // Which of `present` to hear (each with id and talks), those chosen before first: who talks, then anybody.
  choose(present, chosen) {
    if (this.voices === null || present.length <= this.voices) return null;
    const rank = (one) => (one.talks ? 0 : 2) + (chosen.includes(one.id) ? 0 : 1);
    return [...present].sort((a, b) => rank(a) - rank(b) || a.id - b.id).slice(0, this.voices).map((one) => one.id);
  }
}
