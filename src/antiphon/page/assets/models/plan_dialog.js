/** A dialog that tells what would be done before it is: the dry run, then the choice. What is done is a plan's own. */

import { callJson, isAbort } from "../base/api.js";
import { fill, freshId, h } from "../base/dom.js";
import { Notice } from "../parts/fields.js";
import { foreseen } from "./foresight.js";

const SETTLED_MS = 250; // after the last key before what is written is asked about

/**
 * @typedef {object} Plan
 * @property {string} title
 * @property {string} verb The label of the button that does it.
 * @property {string} path The route, which takes `dry_run`.
 * @property {() => object | null} body What is sent there; null where the fields are not complete.
 * @property {(body: object) => void} start Does it.
 * @property {(Node | string)[]} [fields]
 * @property {boolean} [isDangerous]
 */

/**
 * Show a plan. The dialog is gone when it is closed, and the focus is back where it was.
 *
 * @param {Plan} plan
 */
export function openPlan(plan) {
  if (document.querySelector("dialog[open]")) return; // a second click, while the first one asked the server
  const dialog = new PlanDialog(plan).element;
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.showModal();
}

class PlanDialog {
  #plan;
  #foresight = h("div", { class: "foresight", role: "status" });
  #notice = new Notice();
  #confirm;
  #asking = new AbortController();
  #timer = 0;

  constructor(plan) {
    this.#plan = plan;
    this.#confirm = h("button", { type: "submit", class: plan.isDangerous ? "danger" : "primary" }, plan.verb);
    const title = h("h2", { id: freshId("plan") }, plan.title);
    const close = h("button", { type: "button", onclick: () => this.element.close() }, "Cancel");
    this.element = h(
      "dialog",
      { class: "plan-dialog", "aria-labelledby": title.id, onclose: () => this.#forget() },
      h(
        "form",
        { method: "dialog", onsubmit: () => plan.start(plan.body()), oninput: () => this.#changed() },
        title,
        ...(plan.fields ?? []),
        this.#foresight,
        this.#notice,
        h("div", { class: "buttons" }, this.#confirm, close),
      ),
    );
    this.#ask();
  }

  /** What is shown is not true of the fields any more: nothing is done before it is. */
  #changed() {
    this.#confirm.disabled = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(), SETTLED_MS);
  }

  #forget() {
    clearTimeout(this.#timer);
    this.#asking.abort();
  }

  async #ask() {
    this.#confirm.disabled = true;
    this.#asking.abort();
    this.#asking = new AbortController();
    const body = this.#plan.body();
    if (body === null) {
      this.#show(null, null);
      return;
    }
    try {
      const asked = { json: { ...body, dry_run: true }, signal: this.#asking.signal };
      this.#show(await callJson(this.#plan.path, asked), null);
    } catch (error) {
      if (!isAbort(error)) this.#show(null, error);
    }
  }

  #show(foresight, error) {
    fill(this.#foresight, foresight && foreseen(foresight));
    this.#notice.show(error ?? foresight?.refusal ?? null);
    this.#confirm.disabled = foresight === null;
    // A refusal is foretold as far as it is known: the reader may know more, or be patient.
    this.#confirm.textContent = foresight?.refusal ? `${this.#plan.verb} all the same` : this.#plan.verb;
  }
}
