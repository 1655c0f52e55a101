/** The dialog for a new model: its fields, and what the server would make of them. */

import { h } from "../base/dom.js";
import { choice, field } from "../parts/fields.js";

const TASKS = ["tts", "asr", "diar", "vad", "align"];
const MODES = ["offline", "streaming"];
const ELSEWHERE = "";

/**
 * @param {import("../base/feed.js").Feed} feed
 * @param {import("./plans.js").Plans} plans
 * @param {object[]} packages As `/v1/ui/packages` lists them.
 * @param {object | null} chosen The package that is to be registered; null leaves that open.
 */
export function openRegistration(feed, plans, packages, chosen = null) {
  const form = new Registration(feed, packages);
  form.take(chosen);
  const body = () => form.body();
  const plan = { title: "Register a model", verb: "Register and load", path: "v1/models/load", body };
  plans.open({ ...plan, fields: [form.element] }, ({ id }) => `${id} is registered and in memory`);
}

class Registration {
  #feed;
  #packages;
  #package;
  #id = h("input", { required: true, autocomplete: "off", spellcheck: false, oninput: () => this.#warn() });
  #path = h("input", { required: true, autocomplete: "off", spellcheck: false });
  #family = h("input", { required: true, autocomplete: "off", spellcheck: false });
  #task = choice(TASKS.map((task) => [task]));
  #mode = choice(MODES.map((mode) => [mode]));
  #slots = h("input", { type: "number", min: 1, max: 16, placeholder: "1" });
  #aliases = h("input", { autocomplete: "off", spellcheck: false });
  #taken = h("p", { class: "model-error", role: "status", hidden: true });

  constructor(feed, packages) {
    this.#feed = feed;
    this.#packages = packages.filter((it) => it.path !== null);
    const pairs = this.#packages.map((it) => [it.path, it.id]);
    this.#package = choice([[ELSEWHERE, "none, but other files"], ...pairs]);
    this.#package.addEventListener("change", () => this.take(this.#found()));
    this.element = h(
      "div",
      { class: "fields" },
      field("Package", this.#package),
      field("Id", this.#id),
      field("Path", this.#path, "On the server."),
      field("Family", this.#family, "The engine that runs it."),
      field("Task", this.#task),
      field("Mode", this.#mode),
      this.#hasSlots && field("Slots", this.#slots),
      field("Aliases", this.#aliases, "Names beside the id, with commas between them."),
      this.#taken,
    );
  }

  /** Fill the fields with what a package is. */
  take(chosen) {
    if (chosen === null) return;
    this.#package.value = chosen.path;
    this.#id.value = chosen.id;
    this.#path.value = chosen.path;
    this.#family.value = chosen.family;
    this.#task.value = chosen.task;
    this.#mode.value = chosen.mode;
    this.#warn();
  }

  /** What is sent; null while something is missing. */
  body() {
    const [id, path, family] = [this.#id, this.#path, this.#family].map((input) => input.value.trim());
    if (!(id && path && family && this.#slots.validity.valid)) return null;
    const aliases = this.#aliases.value.split(",").map((name) => name.trim());
    const slots = this.#slots.value ? { slots: this.#slots.valueAsNumber } : {};
    const known = { id, path, family, task: this.#task.value, mode: this.#mode.value };
    return { ...known, ...slots, aliases: aliases.filter(Boolean) };
  }

  /** Whether the server may have slots to choose: without --parallel-jobs it refuses to be told of them. */
  get #hasSlots() {
    return this.#feed.models.length === 0 || this.#feed.models.some((model) => "slots" in model);
  }

  #found() {
    return this.#packages.find((it) => it.path === this.#package.value) ?? null;
  }

  #warn() {
    const isTaken = this.#feed.models.some((model) => model.id === this.#id.value.trim());
    this.#taken.hidden = !isTaken;
    this.#taken.textContent = isTaken ? "There is a model of this id: its whole registration is replaced." : "";
  }
}
