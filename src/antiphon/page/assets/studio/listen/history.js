/** The results of this page, the last one first. It keeps some, and shows none. */

import { fill, h } from "../../base/dom.js";

/** Each holds its recording, so there are few. */
export const KEPT_RESULTS = 10;

/** Asks to show one with a `choose` event, whose `detail` is the entry. */
export class History extends HTMLElement {
  #entries = [];
  #buttons = new Map();
  #list = h("ul", { class: "listen-history" });

  constructor() {
    super();
    this.hidden = true;
    fill(this, h("h3", {}, "Heard on this page"), this.#list);
  }

  /** @param {import("./result_view.js").Entry} entry */
  add(entry) {
    const facts = [entry.label, entry.order.model, entry.at.toLocaleTimeString()].join(" · ");
    const button = h(
      "button",
      { type: "button", onclick: () => this.choose(entry) },
      h("span", { class: "listen-said" }, beginningOf(entry)),
      h("small", {}, facts),
    );
    this.#buttons.set(entry, button);
    this.#entries.unshift(entry);
    this.#list.prepend(h("li", {}, button));
    this.hidden = false;
    for (const old of this.#entries.splice(KEPT_RESULTS)) this.#drop(old);
    this.choose(entry);
  }

  /** Show this one. */
  choose(entry) {
    for (const [other, button] of this.#buttons) {
      if (other === entry) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
    this.dispatchEvent(new CustomEvent("choose", { detail: entry }));
  }

  #drop(entry) {
    this.#buttons.get(entry).parentElement.remove();
    this.#buttons.delete(entry);
  }
}

customElements.define("antiphon-listen-history", History);

const SHOWN_CHARACTERS = 80;

function beginningOf({ order, result }) {
  const { text } = result.heard;
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text || order.file.name;
}
