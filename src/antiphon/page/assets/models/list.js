/** All models, and what may be done to several of them. How one is shown is its card's. */

import { h } from "../base/dom.js";
import { field } from "../parts/fields.js";
import { Keyed, setText } from "../parts/in_place.js";
import { ModelCard } from "./card.js";

export class ModelList {
  #feed;
  #plans;
  #list = h("ul", { class: "models" });
  #cards;
  #summary = h("p", { class: "models-summary" });
  #nothing = h("p", { class: "empty" });
  #damaged = h("ul", { class: "models-damaged", "aria-label": "Models that are not served" });
  #faults = new Keyed(
    this.#damaged,
    ({ id }) => id,
    () => new Fault(),
  );
  #search = h("input", { type: "search", autocomplete: "off", oninput: () => this.#filter() });
  #all = h("input", { type: "checkbox", onchange: () => this.#chooseAll() });
  #some = h("button", { type: "button", class: "danger", onclick: () => this.#plans.unloadSome(this.#chosen()) });
  #tools;

  /**
   * @param {import("../base/feed.js").Feed} feed
   * @param {import("./ages.js").Ages} ages
   * @param {import("./plans.js").Plans} plans
   * @param {() => void} register Opens the dialog for a new model.
   */
  constructor(feed, ages, plans, register) {
    this.#feed = feed;
    this.#plans = plans;
    this.#cards = new Keyed(
      this.#list,
      ({ status }) => status.id,
      ({ status }) => new ModelCard(status.id, ages, plans, () => this.#count()),
    );
    this.#tools = this.#toolbar(register);
    this.element = h(
      "div",
      {},
      h("div", { class: "models-bar" }, field("Find a model", this.#search), this.#summary),
      this.#tools,
      this.#damaged,
      this.#nothing,
      this.#list,
    );
    for (const type of ["status", "models"]) feed.addEventListener(type, () => this.#update());
    this.#update();
  }

  #toolbar(register) {
    const every = h("button", { type: "button", onclick: () => this.#plans.unloadSome(null) }, "Unload all…");
    const another = h("button", { type: "button", onclick: register }, "Register a model…");
    const label = h("label", { class: "check" }, this.#all, " Select all");
    return h("div", { class: "buttons models-tools" }, label, this.#some, every, another);
  }

  #update() {
    const { status, statusAt: at, models, mayManage } = this.#feed;
    if (status === null) return;
    const listed = new Map(models.map((model) => [model.id, model]));
    this.#cards.show(
      status.models.map((model) => ({ status: model, listed: listed.get(model.id) ?? null, at, mayManage })),
    );
    const notServed = status.not_served ?? [];
    this.#faults.show(notServed);
    this.#damaged.hidden = notServed.length === 0;
    setText(this.#summary, summaryOf(status.models));
    this.#tools.hidden = !mayManage;
    this.#filter();
  }

  #filter() {
    const wanted = this.#search.value.trim().toLowerCase();
    const known = new Map(this.#feed.models.map((model) => [model.id, model]));
    for (const card of this.#cards.parts) {
      const isShown = matches(card.id, known.get(card.id), wanted);
      card.element.hidden = !isShown;
      if (!isShown) card.select.checked = false; // what is not seen is not unloaded with the others
    }
    const isEmpty = this.#seen().length === 0;
    this.#nothing.hidden = !isEmpty;
    if (isEmpty) setText(this.#nothing, wanted ? "No model is like that." : "There is no model yet.");
    this.#count();
  }

  #seen() {
    return this.#cards.parts.filter((card) => !card.element.hidden);
  }

  #chosen() {
    return this.#seen()
      .filter((card) => card.select.checked)
      .map((card) => card.id);
  }

  #chooseAll() {
    for (const card of this.#seen()) card.select.checked = this.#all.checked;
    this.#count();
  }

  #count() {
    const [chosen, seen] = [this.#chosen().length, this.#seen().length];
    this.#all.checked = chosen > 0 && chosen === seen;
    this.#all.indeterminate = chosen > 0 && chosen < seen;
    this.#some.disabled = chosen === 0;
    setText(this.#some, `Unload selected (${chosen})…`);
  }
}

/** A model that is installed and not served, because its files are damaged. */
class Fault {
  element = h("li");

  update({ id, error }) {
    setText(this.element, `${id} is not served: ${error}`);
  }
}

function matches(id, listed, wanted) {
  const words = [id, listed?.family, listed?.task, listed?.mode, ...(listed?.aliases ?? [])];
  return words.some((word) => word?.toLowerCase().includes(wanted));
}

function summaryOf(models) {
  const sum = (count) => models.reduce((total, model) => total + count(model), 0);
  const loaded = sum((model) => Number(model.loaded));
  const running = sum((model) => model.leases.length);
  const waiting = sum((model) => model.waiting);
  const noun = models.length === 1 ? "model" : "models";
  return `${models.length} ${noun} · ${loaded} in memory · ${running} running · ${waiting} waiting`;
}
