/**
 * A transcript that is read along with its recording: the word that sounds is marked, and each word leads to its place. It
 * plays nothing; what it shows and where is told to it.
 *
 * The words are text, and one stop of the Tab key: the arrow keys go from word to word, Enter plays from there. Screen
 * readers read paragraphs; only the word that the keys are at is a button to them, and so is the time of each paragraph.
 */

import { h } from "../../base/dom.js";
import { place } from "../../base/format.js";
import { indexAt, paragraphsOf } from "./heard.js";

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** Asks to go to a place with a `seek` event, whose `detail` is in seconds. */
export class TranscriptView extends HTMLElement {
  #words = [];
  #starts = [];
  #current = -1;
  #stop = -1;

  constructor() {
    super();
    this.addEventListener("click", (event) => this.#clicked(event));
    this.addEventListener("keydown", (event) => this.#pressed(event));
  }

  /**
   * @param {import("./heard.js").Heard} heard
   * @param {(speaker: string) => HTMLElement} label The name of a speaker, as it is shown.
   */
  show(heard, label) {
    const paragraphs = paragraphsOf(heard);
    const shown = paragraphs.flat();
    this.#starts = shown.map((piece) => piece.start);
    this.#current = -1;
    let speaker = null;
    const drawn = paragraphs.map((paragraph) => {
      const isNew = paragraph[0].speaker !== speaker;
      speaker = paragraph[0].speaker;
      return this.#paragraph(paragraph, isNew && label(speaker));
    });
    this.replaceChildren(...(drawn.length ? drawn : [untimed(heard)]));
    this.#words = [...this.querySelectorAll(".word")];
    if (this.#words.length) this.#makeStop(0);
  }

  /** Mark what sounds at a place, in seconds: two words change, however many there are. */
  markAt(seconds, isFollowed = false) {
    const index = indexAt(this.#starts, seconds);
    if (index === this.#current) return;
    this.#words[this.#current]?.classList.remove("sounding");
    this.#current = index;
    const word = this.#words[index];
    word?.classList.add("sounding");
    if (isFollowed && word) this.#bringIntoView(word);
  }

  #paragraph(pieces, label) {
    const start = pieces[0].start;
    const seek = h("button", { type: "button", class: "listen-time", "data-start": start }, place(start));
    seek.setAttribute("aria-label", `Play from ${place(start)}`);
    const words = pieces.flatMap(({ before, text, start: at }) => [
      before,
      h("span", { class: "word", "data-start": at, tabIndex: -1 }, text),
    ]);
    return h("div", { class: "listen-paragraph" }, seek, h("p", {}, label, label && " ", ...words));
  }

  #clicked({ target }) {
    const word = target.closest("[data-start]");
    if (!word) return;
    if (word.classList.contains("word")) this.#makeStop(this.#words.indexOf(word));
    this.#seek(word);
  }

  #pressed(event) {
    if (!event.target.classList.contains("word")) return;
    if (event.key === "Enter" || event.key === " ") this.#seek(event.target);
    else if (event.key === "Home") this.#goTo(0);
    else if (event.key === "End") this.#goTo(this.#words.length - 1);
    else if (event.key in STEPS) this.#goTo(this.#stop + STEPS[event.key]);
    else return;
    event.preventDefault();
  }

  #seek(element) {
    this.dispatchEvent(new CustomEvent("seek", { detail: Number(element.dataset.start) }));
  }

  #goTo(index) {
    if (!this.#words[index]) return;
    this.#makeStop(index);
    this.#words[index].focus();
  }

  #makeStop(index) {
    const before = this.#words[this.#stop];
    if (before) {
      before.tabIndex = -1;
      before.removeAttribute("role");
    }
    this.#stop = index;
    this.#words[index].tabIndex = 0;
    this.#words[index].setAttribute("role", "button");
  }

  /** Within this box alone: the page stays where its reader has it. */
  #bringIntoView(word) {
    const box = this.getBoundingClientRect();
    const at = word.getBoundingClientRect();
    if (at.top < box.top || at.bottom > box.bottom) this.scrollTop += at.top - box.top - box.height / 3;
  }
}

customElements.define("antiphon-transcript", TranscriptView);

function untimed({ text, turns }) {
  if (text) return h("p", { class: "listen-untimed", tabIndex: 0 }, text);
  return h("p", { class: "empty" }, turns.length ? "Turns alone: no text was asked for." : "Nothing was said.");
}
