/** One model package: what it is, and how its install stands. It asks the server nothing by itself. */

import { h } from "../base/dom.js";
import { bytes } from "../base/format.js";
import { Notice } from "../parts/fields.js";
import { setAttribute, setText } from "../parts/in_place.js";

export class PackageRow {
  #shown = null;
  #state = h("span", { class: "state" });
  #facts = h("p", { class: "model-facts" });
  #summary = h("p", {});
  #licence = h("p", { class: "model-facts" });
  #progress;
  #phase = h("span", {});
  #running;
  #notice = new Notice();
  #verb = h("span", {});
  #installed;

  /**
   * @param {string} id
   * @param {{toggle: (shown: object) => void, remove: (shown: object) => void, register: (shown: object) => void}} acts
   */
  constructor(id, acts) {
    const button = (label, act) =>
      h("button", { type: "button", class: "quiet", onclick: () => act(this.#shown) }, label, unseen(id));
    this.#progress = h("progress", { max: 1, "aria-label": `Install of ${id}` });
    this.#running = h("div", { class: "package-progress" }, this.#progress, this.#phase);
    this.#installed = h("span", { class: "model-actions" });
    this.#installed.append(button("Register…", acts.register), button("Remove…", acts.remove));
    const actions = h("div", { class: "model-actions" }, button(this.#verb, acts.toggle), this.#installed);
    this.element = h(
      "li",
      { class: "package card", "data-package": id },
      h("div", { class: "model-head" }, h("h2", {}, id), this.#state),
      this.#summary,
      this.#facts,
      this.#licence,
      this.#running,
      this.#notice,
      actions,
    );
  }

  /** @param {object} shown A package, as the API tells of it. */
  update(shown) {
    const before = this.#shown;
    this.#shown = shown;
    const { state, summary, licence, phase, progress, error } = shown;
    setAttribute(this.element, "data-state", state);
    setText(this.#state, state);
    setText(this.#summary, summary);
    setText(this.#facts, factsOf(shown));
    setText(this.#licence, `Licence: ${licence}`);
    this.#running.hidden = phase === null;
    this.#progress.value = progress ?? 0;
    setText(this.#phase, phase === null ? "" : `${phase}, ${Math.round(100 * (progress ?? 0))} %`);
    if (before?.error !== error) this.#notice.show(error === null ? null : new Error(error));
    this.#installed.hidden = !shown.installed || phase !== null;
    setText(this.#verb, verbOf(shown));
    this.#verb.parentElement.hidden = state === "installed" && phase === null;
  }
}

function unseen(id) {
  return h("span", { class: "unseen" }, ` ${id}`);
}

function verbOf({ phase, state, download_bytes: size }) {
  if (phase !== null) return "Stop";
  return state === "absent" ? `Install (${bytes(size)})` : `Install anew (${bytes(size)})`;
}

function factsOf({ family, task, mode, size_bytes: size }) {
  return `${family} · ${task} · ${mode} · ${bytes(size)} on the disk`;
}
