/**
 * The journal as a list, newest first, with what it is filtered by. It shows the entries that it is given, and keeps as many
 * rows as its limit says; `words.js` has what they say.
 */

import { h } from "../base/dom.js";
import { clockTime } from "../base/format.js";
import { onOpened } from "../parts/disclosure.js";
import { drawnWhileShown } from "../parts/drawing.js";
import { copyButton, field } from "../parts/fields.js";
import { setText } from "../parts/in_place.js";
import { KINDS, kindsOf, requestsOf, told } from "./words.js";

/** How many rows there are at first, and how many more each time that older ones are asked for. */
export const ROWS = 100;

/** How many rows there are at most. */
export const MOST_ROWS = 1000;

const DRAW_EVERY_MS = 250;

export class Journal extends HTMLElement {
  #kept;
  #model = "";
  #most = ROWS;
  #isPaused = false;
  /** Entries that have no row yet, oldest first; never more than there may be rows. */
  #new = [];
  #newCount = 0;

  /** @param {() => any[]} kept All entries that there are, oldest first. */
  constructor(kept) {
    super();
    this.#kept = kept;
    this.#build();
    this.draw = drawnWhileShown(this, DRAW_EVERY_MS, () => this.#addRows());
    this.#begin();
  }

  /** Take a new entry. */
  take(entry) {
    if (!this.#isWanted(entry)) return;
    this.#new.push(entry);
    this.#newCount += 1;
    if (this.#new.length > 2 * this.#most) this.#new.splice(0, this.#most);
    this.draw();
  }

  /** Show the entries of one model, or with "" of all. */
  showModel(model) {
    this.#model = model;
    this.#begin();
  }

  #build() {
    this.kinds = new Map(
      Object.entries(KINDS).map(([kind, { label, isShown }]) => [kind, this.#kindBox(label, isShown)]),
    );
    this.search = h("input", { type: "search", spellcheck: false, autocomplete: "off", oninput: () => this.#begin() });
    this.pause = h("button", { type: "button", class: "quiet", "aria-pressed": "false", onclick: () => this.#pause() });
    this.older = h(
      "button",
      { type: "button", class: "quiet", hidden: true, onclick: () => this.#showOlder() },
      "Show older entries",
    );
    this.rows = h("ol", { class: "journal-rows", "aria-label": "Journal, newest first" });
    this.none = h("p", { class: "empty", hidden: true }, "No entry is like that.");
    const boxes = [...this.kinds.values()].map(({ label }) => label);
    this.append(
      h(
        "div",
        { class: "journal-head" },
        h("h2", {}, "Journal"),
        this.pause,
        copyButton("Copy as JSONL", () => this.#lines()),
      ),
      h(
        "div",
        { class: "journal-filters" },
        h("fieldset", {}, h("legend", {}, "Show"), ...boxes),
        field("Request id", this.search, "Finds requests whether or not they are shown."),
      ),
      this.none,
      this.rows,
      this.older,
    );
  }

  #kindBox(text, isShown) {
    const box = h("input", { type: "checkbox", checked: isShown, onchange: () => this.#begin() });
    return { box, label: h("label", { class: "check" }, box, ` ${text}`) };
  }

  #isWanted(entry) {
    const kinds = kindsOf(entry);
    if (kinds === null) return true;
    if (this.#model && entry.model !== this.#model) return false;
    const part = this.search.value.trim();
    if (part) return requestsOf(entry).some((id) => id.includes(part));
    return kinds.some((kind) => this.kinds.get(kind).box.checked);
  }

  /** Begin anew with what is wanted now. */
  #begin() {
    this.rows.replaceChildren();
    this.#new = this.#wanted(this.#most);
    this.#newCount = 0;
    this.#setPaused(false);
    this.draw();
  }

  /** The newest of the entries that are wanted, oldest first. */
  #wanted(most) {
    const found = [];
    const kept = this.#kept();
    for (let at = kept.length - 1; at >= 0 && found.length < most; at -= 1) {
      if (this.#isWanted(kept[at])) found.push(kept[at]);
    }
    return found.reverse();
  }

  #addRows() {
    if (!this.#isPaused) {
      const entries = this.#new.splice(0).slice(-this.#most);
      this.#newCount = 0;
      this.rows.prepend(...entries.map(row).reverse());
      this.#dropRows();
    }
    this.none.hidden = this.rows.childElementCount > 0;
    this.older.hidden = this.rows.childElementCount < this.#most || this.#most >= MOST_ROWS;
    this.#namePause();
  }

  #dropRows() {
    const surplus = [...this.rows.children].slice(this.#most);
    // Where the reader is, a row stays: the focus would be lost with it.
    for (const old of surplus) if (!old.contains(document.activeElement)) old.remove();
  }

  #showOlder() {
    const shown = this.rows.childElementCount;
    this.#most = Math.min(MOST_ROWS, this.#most + ROWS);
    const older = this.#wanted(this.#most + this.#newCount)
      .reverse()
      .slice(shown + this.#newCount);
    const rows = older.map(row);
    this.rows.append(...rows);
    rows[0]?.querySelector("summary").focus();
    this.draw();
  }

  #pause() {
    this.#setPaused(!this.#isPaused);
    this.draw();
  }

  #setPaused(isPaused) {
    this.#isPaused = isPaused;
    this.pause.setAttribute("aria-pressed", String(isPaused));
    this.#namePause();
  }

  #namePause() {
    const waiting = this.#newCount > 0 ? `Paused (${this.#newCount} new)` : "Paused";
    const name = this.#isPaused ? waiting : "Pause";
    setText(this.pause, name);
  }

  #lines() {
    return this.#wanted(Number.POSITIVE_INFINITY)
      .map((entry) => `${JSON.stringify(entry)}\n`)
      .join("");
  }
}

customElements.define("antiphon-journal", Journal);

function row(entry) {
  const { tag, tone, text } = told(entry);
  const details = h(
    "details",
    {},
    h(
      "summary",
      {},
      h("time", { class: "journal-time" }, entry.time ? clockTime(entry.time) : ""),
      h("span", { class: "journal-tag" }, tag),
      h("span", { class: "journal-text" }, entry.model ? [h("b", {}, entry.model), ": "] : "", text),
    ),
  );
  onOpened(details, () => expand(details, entry));
  return h("li", { "data-tone": tone, "data-type": entry.type }, details);
}

function expand(details, entry) {
  if (details.querySelector("pre")) return; // it has been open before
  details.append(h("pre", { tabIndex: 0 }, JSON.stringify(entry, null, 2)));
}
