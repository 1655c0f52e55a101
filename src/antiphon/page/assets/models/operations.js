/** What was asked of the server in this page: what it waits for, and how it ended. It knows no route. */

import { isAbort } from "../base/api.js";
import { h } from "../base/dom.js";
import { Notice } from "../parts/fields.js";
import { setText } from "../parts/in_place.js";

const KEPT = 6; // of those that have ended well

export class Operations {
  #ages;
  #list = h("ul", { class: "operations", "aria-label": "What you asked for" });
  #said = h("p", { class: "unseen", role: "status" });

  /** @param {import("./ages.js").Ages} ages */
  constructor(ages) {
    this.#ages = ages;
    this.element = h("div", {}, this.#said, this.#list);
  }

  /**
   * Do something that takes its time, and show how it goes.
   *
   * @param {string} title "Unload whisper-base"
   * @param {(signal: AbortSignal) => Promise<string>} perform What it answers is told of its end.
   */
  async begin(title, perform) {
    const giving = new AbortController();
    const entry = new Entry(title, this.#ages, giving);
    this.#list.prepend(entry.element);
    try {
      const told = await perform(giving.signal);
      entry.done(told);
      this.#said.textContent = `${title}: ${told}`;
      this.#forgetOld();
    } catch (error) {
      if (isAbort(error)) entry.done("given up before it ended");
      else entry.failed(error);
    }
  }

  #forgetOld() {
    for (const old of [...this.#list.querySelectorAll('[data-stage="done"]')].slice(KEPT)) old.remove();
  }
}

class Entry {
  #ages;
  #told = h("span", {}, "waits or works");
  #age = h("span", { class: "age" });
  #notice = new Notice();
  #button;

  constructor(title, ages, giving) {
    this.#ages = ages;
    this.#button = h("button", { type: "button", class: "quiet" }, "Give up");
    this.#button.addEventListener("click", () => giving.abort());
    this.element = h(
      "li",
      { "data-stage": "open" },
      h("p", {}, h("strong", {}, title), " ", this.#told, " ", this.#age),
      this.#button,
      this.#notice,
    );
    ages.show(this.#age, performance.now());
  }

  done(told) {
    setText(this.#told, told);
    this.#end("done");
  }

  failed(error) {
    setText(this.#told, "was refused or failed");
    this.#notice.show(error);
    this.#end("failed");
  }

  #end(stage) {
    this.element.dataset.stage = stage;
    this.#ages.drop(this.#age);
    const dismiss = h("button", { type: "button", class: "quiet", onclick: () => this.element.remove() }, "Dismiss");
    const hadFocus = document.activeElement === this.#button;
    this.#button.replaceWith(dismiss);
    if (hadFocus) dismiss.focus();
  }
}
