/** Who speaks when: a row for each speaker over the length of the recording, and the same as a table. It plays nothing. */

import { fill, h } from "../../base/dom.js";
import { place } from "../../base/format.js";
import { indexAt, speakersOf } from "./heard.js";

const KINDS = 8; // of colour and pattern together, in listen.css; a ninth speaker looks like the first, with another name
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** Asks to go to a place with a `seek` event, whose `detail` is in seconds. */
export class TurnsView extends HTMLElement {
  #turns = [];
  #bars = [];
  #starts = [];
  #current = -1;
  #needle = h("div", { class: "listen-needle", "aria-hidden": true });
  #duration = 0;

  constructor() {
    super();
    this.addEventListener("click", ({ target }) => this.#seek(target.closest("[data-start]")));
    this.addEventListener("keydown", (event) => this.#pressed(event));
  }

  /** @param {import("./heard.js").Turn[]} turns */
  show(turns) {
    this.#turns = turns;
    this.#starts = turns.map((turn) => turn.start);
    this.#current = -1;
    this.hidden = turns.length === 0;
    const speakers = speakersOf(turns);
    this.#bars = turns.map((turn) => bar(turn, speakers.indexOf(turn.speaker)));
    if (this.#bars.length) this.#bars[0].tabIndex = 0;
    fill(this, h("h3", {}, "Who speaks"), this.#rows(speakers), this.#table(speakers));
    this.scale(0);
  }

  /** Draw the rows for a recording of so many seconds; one that is not known ends with its last turn. */
  scale(seconds) {
    this.#duration = Math.max(seconds, ...this.#turns.map((turn) => turn.end));
    this.#turns.forEach(({ start, end }, index) => {
      const { style } = this.#bars[index];
      style.left = `${(100 * start) / this.#duration}%`;
      style.width = `${(100 * (end - start)) / this.#duration}%`;
    });
  }

  /** Mark the turn at a place, in seconds. */
  markAt(seconds) {
    this.#needle.style.left = `${(100 * seconds) / this.#duration}%`;
    const index = indexAt(this.#starts, seconds);
    const isWithin = index >= 0 && seconds < this.#turns[index].end;
    const current = isWithin ? index : -1;
    if (current === this.#current) return;
    this.#bars[this.#current]?.classList.remove("sounding");
    this.#bars[current]?.classList.add("sounding");
    this.#current = current;
  }

  #rows(speakers) {
    const rows = speakers.flatMap((speaker) => [
      speakerLabel(speaker, speakers),
      h("div", { class: "listen-lane" }, ...this.#barsOf(speaker)),
    ]);
    const named = { role: "group", "aria-label": "Turns, in their order" };
    return h("div", { class: "listen-rows", ...named }, ...rows, this.#needle);
  }

  #barsOf(speaker) {
    return this.#bars.filter((_, index) => this.#turns[index].speaker === speaker);
  }

  #table(speakers) {
    const row = ({ start, end, speaker }) => {
      const seek = h("button", { type: "button", class: "listen-time", "data-start": start }, place(start));
      seek.setAttribute("aria-label", `Play from ${place(start)}`);
      return h("tr", {}, h("td", {}, speakerLabel(speaker, speakers)), h("td", {}, seek), h("td", {}, place(end)));
    };
    const head = ["Speaker", "From", "To"].map((name) => h("th", { scope: "col" }, name));
    const table = h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...this.#turns.map(row)));
    return h("details", {}, h("summary", {}, `As a table (${this.#turns.length})`), table);
  }

  #pressed(event) {
    const at = this.#bars.indexOf(event.target);
    const next = this.#bars[at + (STEPS[event.key] ?? 0)];
    if (at < 0 || !(event.key in STEPS) || !next) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  #seek(element) {
    if (element) this.dispatchEvent(new CustomEvent("seek", { detail: Number(element.dataset.start) }));
  }
}

customElements.define("antiphon-turns", TurnsView);

function bar({ start, end, speaker }, kind) {
  return h("button", {
    type: "button",
    class: "listen-turn",
    tabIndex: -1,
    "data-kind": kind % KINDS,
    "data-start": start,
    "aria-label": `${speaker}, ${place(start)} to ${place(end)}`,
  });
}

/** A speaker's name beside the colour and the pattern that are the speaker's everywhere. */
export function speakerLabel(speaker, speakers) {
  const swatch = h("span", { class: "listen-swatch", "data-kind": speakers.indexOf(speaker) % KINDS });
  return h("span", { class: "listen-speaker" }, swatch, speaker);
}
