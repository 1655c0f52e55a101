/** What was asked of the server in this page: what it waits for, and how it ended. It knows no route. */

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
   * @param {() => Promise<string>} perform What it answers is told of its end.
   */
  async begin(title, perform) {
    const entry = new Entry(title, this.#ages);
    this.#list.prepend(entry.element);
    try {
      const told = await perform();
      entry.done(told);
      this.#said.textContent = `${title}: ${told}`;
      this.#forgetOld();
    } catch (error) {
      entry.failed(error);
    }
  }

  #forgetOld() {
    for (const old of [...this.#list.querySelectorAll('[data-stage="done"]')].slice(KEPT)) old.remove();
  }
}

/** One of them. The server does it to its end, whether this page is there or not: it cannot be taken back. */
class Entry {
  #ages;
  #told = h("span", {}, "under way");
  #age = h("span", { class: "age" });
  #notice = new Notice();

  constructor(title, ages) {
    this.#ages = ages;
    const line = h("p", {}, h("strong", {}, title), " ", this.#told, " ", this.#age);
    this.element = h("li", { "data-stage": "open" }, line, this.#notice);
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
    const remove = () => this.element.remove();
    this.#notice.before(h("button", { type: "button", class: "quiet", onclick: remove }, "Dismiss"));
  }
}
