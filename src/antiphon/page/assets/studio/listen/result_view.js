/**
 * One result: the recording, who speaks in it, what is said, and what may be taken away. It asks the server only through its
 * parts.
 *
 * @typedef {object} Entry
 * @property {import("./requests.js").Order} order
 * @property {import("./listening.js").Result} result
 * @property {string} label What was done, for the reader.
 * @property {Date} at
 */

import { fill, h } from "../../base/dom.js";
import { duration } from "../../base/format.js";
import { Snippets } from "../snippets.js";
import { Formats } from "./formats.js";
import { speakersOf } from "./heard.js";
import { Player } from "./player.js";
import { TranscriptView } from "./transcript_view.js";
import { speakerLabel, TurnsView } from "./turns_view.js";

export class ResultView extends HTMLElement {
  #player = new Player();
  #turns = new TurnsView();
  #transcript = new TranscriptView();

  /** @param {Entry} entry */
  constructor(entry) {
    super();
    const { order, result } = entry;
    const { turns } = result.heard;
    const speakers = speakersOf(turns);
    this.#transcript.show(result.heard, (speaker) => speakerLabel(speaker, speakers));
    this.#turns.show(turns);
    this.#player.open(order.file);
    this.#connect();
    const formats = new Formats();
    formats.show(entry);
    fill(this, heading(entry), this.#player, this.#turns, this.#transcript, formats, ...result.requests.map(codeOf));
  }

  #connect() {
    this.#player.addEventListener("place", ({ detail: { seconds, isPlaying } }) => {
      this.#transcript.markAt(seconds, isPlaying);
      this.#turns.markAt(seconds);
    });
    this.#player.addEventListener("duration", () => this.#turns.scale(this.#player.duration));
    for (const view of [this.#transcript, this.#turns]) {
      view.addEventListener("seek", ({ detail }) => this.#player.seek(detail));
    }
  }
}

customElements.define("antiphon-result", ResultView);

function heading({ order, result, label }) {
  const run = result.answer.timing?.run_ms;
  const facts = [label, order.model, run && `heard in ${duration(run)}`].filter(Boolean);
  return h("div", { class: "listen-heading" }, h("h3", {}, order.file.name), h("small", {}, facts.join(" · ")));
}

/** Of two requests, each says which it is: who speaks is asked last. */
function codeOf(request, index, requests) {
  const shown = new Snippets();
  shown.show(request);
  const title = index === 0 ? "The transcript" : "Who speaks";
  return h("div", {}, requests.length > 1 && h("h3", {}, title), shown);
}
