/** The model packages: which there are, and installing and removing them. How one is shown is its row's. */

import { callJson } from "../base/api.js";
import { fill, h } from "../base/dom.js";
import { choice, field, Notice } from "../parts/fields.js";
import { Keyed, setOrHide, setText } from "../parts/in_place.js";
import { PackageRow } from "./package_row.js";
import { openRegistration } from "./register.js";

const PACKAGES = "v1/ui/packages";
const ROOT = "v1/ui/models_root";
const POLL_MS = 500;
const TASKS = [["", "any"], ["tts"], ["asr"], ["diar"], ["vad"], ["align"]];
const STATES = [["", "any"], ["installed"], ["absent"], ["outdated"], ["damaged"]];

export class PackagesPane {
  #feed;
  #plans;
  #packages = [];
  #rows;
  #timer = 0;
  #list = h("ul", { class: "packages" });
  #search = h("input", { type: "search", autocomplete: "off" });
  #task = choice(TASKS);
  #state = choice(STATES);
  #root = h("code", {});
  /** Hidden until the folder is known, because the dialog to change it starts from the text shown here. */
  #place = h("p", { class: "models-root", hidden: true });
  #said = h("p", { class: "unseen", role: "status" });
  #nothing = h("p", { class: "empty" });
  #notice = new Notice();

  /**
   * @param {import("../base/feed.js").Feed} feed
   * @param {import("./plans.js").Plans} plans
   */
  constructor(feed, plans) {
    this.#feed = feed;
    this.#plans = plans;
    const acts = {
      toggle: (shown) => this.#toggle(shown),
      remove: (shown) => this.#remove(shown),
      register: (shown) => openRegistration(feed, plans, this.#packages, shown),
    };
    this.#rows = new Keyed(
      this.#list,
      ({ id }) => id,
      ({ id }) => new PackageRow(id, acts),
    );
    this.element = h("div", { oninput: () => this.#show() }, ...this.#parts());
  }

  #parts() {
    const change = h("button", { type: "button", class: "quiet", onclick: () => this.#changeRoot() }, "Change…");
    const filters = [field("Find a package", this.#search), field("Task", this.#task), field("State", this.#state)];
    return [
      fill(this.#place, "Packages are installed in ", this.#root, " ", change),
      h("div", { class: "fields" }, ...filters),
      this.#said,
      this.#notice,
      this.#nothing,
      this.#list,
    ];
  }

  /** Read all of it again. */
  async refresh() {
    await this.#guarded(async () => {
      const [packages, root] = await Promise.all([callJson(PACKAGES), callJson(ROOT)]);
      this.#packages = packages;
      setText(this.#root, root.path);
      this.#place.hidden = false;
    });
  }

  /** Open the dialog for a new model. */
  async register() {
    await this.refresh();
    openRegistration(this.#feed, this.#plans, this.#packages);
  }

  #show() {
    const wanted = this.#search.value.trim().toLowerCase();
    const shown = this.#packages.filter(
      (it) =>
        (this.#task.value === "" || it.task === this.#task.value) &&
        (this.#state.value === "" || it.state === this.#state.value) &&
        [it.id, it.summary, it.family, it.licence].some((text) => text.toLowerCase().includes(wanted)),
    );
    this.#rows.show(shown);
    setOrHide(this.#nothing, shown.length === 0 ? "No package is like that." : "");
  }

  async #toggle({ id, phase }) {
    const verb = phase === null ? "install" : "stop";
    await this.#guarded(async () => this.#take(await callJson(`${PACKAGES}/${verb}`, { json: { id } })));
  }

  #remove({ id }) {
    const path = `${PACKAGES}/remove`;
    const plan = { title: `Remove the package ${id}`, verb: "Remove", path, body: () => ({ id }), isDangerous: true };
    const told = "Its files are deleted. To have it again is to download it again.";
    this.#plans.open({ ...plan, fields: [h("p", {}, told)] }, (now) => {
      this.#take(now);
      this.#show();
      return "is removed";
    });
  }

  #changeRoot() {
    const input = h("input", { value: this.#root.textContent, required: true, spellcheck: false });
    const told = "An absolute path on the server. What is registered stays as it is.";
    const body = () => (input.value.trim() ? { path: input.value.trim() } : null);
    const plan = { title: "Another folder for packages", verb: "Use this folder", path: ROOT, body };
    this.#plans.open({ ...plan, fields: [field("Folder", input, told)] }, (now) => {
      this.refresh();
      return now.path;
    });
  }

  /** Ask for what is being installed until it is, or is not. */
  #follow() {
    clearTimeout(this.#timer);
    const running = this.#packages.filter((it) => it.phase !== null);
    if (running.length === 0) return;
    this.#timer = setTimeout(() => this.#guarded(() => this.#poll(running)), POLL_MS);
  }

  async #poll(running) {
    const told = await Promise.all(running.map(({ id }) => callJson(`${PACKAGES}/${encodeURIComponent(id)}/status`)));
    for (const now of told) {
      this.#take(now);
      if (now.phase === null) setText(this.#said, `${now.id}: ${now.error ?? now.state}`);
    }
  }

  #take(now) {
    this.#packages = this.#packages.map((it) => (it.id === now.id ? now : it));
  }

  async #guarded(act) {
    try {
      await act();
      this.#notice.show(null);
      this.#show();
      this.#follow();
    } catch (error) {
      this.#notice.show(error);
    }
  }
}
