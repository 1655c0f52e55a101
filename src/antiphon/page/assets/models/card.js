/** One model: what it is, how it stands, and what may be done to it. It asks the server nothing by itself. */

import { h } from "../base/dom.js";
import { bytes } from "../base/format.js";
import { Notice } from "../parts/fields.js";
import { setAttribute, setOrHide, setText } from "../parts/in_place.js";
import { QueueLine } from "./queue.js";
import { SlotCells } from "./slots.js";

/**
 * @typedef {object} Shown
 * @property {object} status The model in `/v1/status`.
 * @property {object | null} listed The model in `/v1/models`; null for a moment where it is new.
 * @property {number} at When the status was read, by the page's clock in milliseconds.
 * @property {boolean} mayManage
 */

export class ModelCard {
  #id;
  #plans;
  #shown = null;
  #state = h("span", { class: "state" });
  #facts = h("p", { class: "model-facts" });
  #aliases = h("p", { class: "model-facts" });
  #memory = h("p", { class: "model-facts" });
  #error = h("p", { class: "model-error" });
  #notice = new Notice();
  #toggleVerb = h("span", {});
  #slotsButton;
  #actions;
  #slots;
  #queue;

  /**
   * @param {string} id
   * @param {import("./ages.js").Ages} ages
   * @param {import("./plans.js").Plans} plans
   * @param {() => void} chosen Called when the model was selected, or is not any more.
   */
  constructor(id, ages, plans, chosen) {
    this.#id = id;
    this.#plans = plans;
    this.#slots = new SlotCells(ages);
    this.#queue = new QueueLine(ages);
    this.select = h("input", { type: "checkbox", "aria-label": `Select ${id}`, onchange: chosen });
    this.#slotsButton = this.#button("Slots…", () => this.#openSlots());
    this.#actions = h(
      "div",
      { class: "model-actions" },
      this.#button(this.#toggleVerb, () => this.#toggle()),
    );
    this.#actions.append(this.#slotsButton);
    this.element = h(
      "li",
      { class: "model card", "data-model": id },
      h("div", { class: "model-head" }, this.select, h("h2", {}, id), this.#state, this.#actions),
      h("div", {}, this.#facts, this.#aliases, this.#memory),
      this.#slots.element,
      this.#queue.element,
      this.#error,
      this.#notice,
    );
  }

  get id() {
    return this.#id;
  }

  /** @param {Shown} shown */
  update(shown) {
    this.#shown = shown;
    const { status, listed, at, mayManage } = shown;
    setAttribute(this.element, "data-state", status.state);
    setText(this.#state, status.state);
    setText(this.#facts, factsOf(listed));
    setOrHide(this.#aliases, listed?.aliases.length ? `also ${listed.aliases.join(", ")}` : "");
    setText(this.#memory, memoryOf(status));
    setOrHide(this.#error, status.last_error === null ? "" : `Last error: ${status.last_error}`);
    this.#slots.update(status, at);
    this.#queue.update(status, at);
    this.#permit(mayManage, listed);
  }

  /** Let go of what it holds. */
  drop() {
    this.#slots.drop();
    this.#queue.drop();
  }

  #permit(mayManage, listed) {
    this.select.hidden = !mayManage;
    if (!mayManage) this.select.checked = false;
    this.#actions.hidden = !mayManage;
    this.#slotsButton.hidden = !(listed && "slots" in listed); // without --parallel-jobs there are none to choose
    setText(this.#toggleVerb, this.#isIdle ? "Load…" : "Unload…");
  }

  /** Whether nothing of it is in memory, or about to be. */
  get #isIdle() {
    return this.#shown.status.state === "unloaded";
  }

  // One button for both, so that the focus stays where it was when the state has changed.
  #toggle() {
    if (this.#isIdle) this.#plans.load(this.#id);
    else this.#plans.unload(this.#id);
  }

  async #openSlots() {
    this.#notice.show(null);
    try {
      await this.#plans.slots(this.#id, this.#shown.status.max_parallel_slots);
    } catch (error) {
      this.#notice.show(error);
    }
  }

  #button(label, onclick) {
    return h(
      "button",
      { type: "button", class: "quiet", onclick },
      label,
      h("span", { class: "unseen" }, ` ${this.#id}`),
    );
  }
}

function factsOf(listed) {
  if (!listed) return "";
  const { family, task, mode, voices, languages } = listed;
  const counts = [counted(voices.length, "voice"), counted(languages.length, "language")];
  return [family, task, mode, ...counts].filter(Boolean).join(" · ");
}

function counted(count, noun) {
  return count === 0 ? "" : `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function memoryOf({ resident_bytes: resident, max_parallel_slots: most, loaded }) {
  if (!loaded) return "not in memory";
  const taken = resident === null ? "in memory" : `${bytes(resident)} in memory`;
  return most === null ? taken : `${taken} · up to ${most} at once`;
}
