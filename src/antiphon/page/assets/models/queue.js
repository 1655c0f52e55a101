/** The queue of one model, in its order: requests, and barriers across it. It knows no slots. */

import { h } from "../base/dom.js";
import { Keyed, setAttribute, setOrHide, setText } from "../parts/in_place.js";
import { seconds } from "./ages.js";
import { operationName } from "./slots.js";

/** Requests one after another that are drawn before the rest of them is told as a number. */
const DRAWN = 8;

export class QueueLine {
  #title = h("h3", {});
  #list = h("ol", { class: "queue", "aria-label": "Queue" });
  #more = h("p", { class: "empty" });
  #whole = h("button", { type: "button", class: "quiet", "aria-expanded": "false", onclick: () => this.#toggle() });
  #waiters;
  #shown = { queue: [], waiting: 0 };
  #at = 0;
  #isWhole = false;

  /** @param {import("./ages.js").Ages} ages */
  constructor(ages) {
    this.element = h("div", { class: "queued" }, this.#title, this.#list, this.#more, this.#whole);
    this.#waiters = new Keyed(
      this.#list,
      ({ key }) => key,
      (entry) => ("waiter" in entry ? new Waiter(ages) : new Fold()),
    );
  }

  /**
   * @param {{queue: object[], waiting: number}} status
   * @param {number} at When the status was read, by the page's clock in milliseconds.
   */
  update({ queue, waiting }, at) {
    this.#shown = { queue, waiting };
    this.#at = at;
    this.#draw();
  }

  /** Let go of what the waiters hold. */
  drop() {
    this.#waiters.show([]);
  }

  #draw() {
    const { queue, waiting } = this.#shown;
    this.element.hidden = waiting === 0;
    setText(this.#title, summary(queue, waiting));
    const entries = entriesOf(queue, this.#at, this.#isWhole);
    this.#waiters.show(entries);
    setOrHide(this.#more, waiting > queue.length ? `and ${waiting - queue.length} more, which are not listed` : "");
    this.#whole.hidden = !this.#isWhole && entries.length === queue.length;
    setText(this.#whole, this.#isWhole ? "Show less of the queue" : "Show the whole queue");
    setAttribute(this.#whole, "aria-expanded", this.#isWhole);
  }

  #toggle() {
    this.#isWhole = !this.#isWhole;
    this.#draw();
  }
}

/** One who waits. They have no names in the status, so a place in the queue is kept, and who stands there is told. */
class Waiter {
  #ages;
  #place = h("span", { class: "waiter-place" });
  #what = h("span", { class: "waiter-what" });
  #age = h("span", { class: "age" });
  #estimate = h("span", { class: "waiter-estimate" });

  constructor(ages) {
    this.#ages = ages;
    this.element = h("li", { class: "waiter" }, this.#place, " ", this.#what, " ", this.#age, " ", this.#estimate);
  }

  update({ waiter, at }) {
    const isBarrier = waiter.kind === "management";
    setAttribute(this.element, "data-kind", waiter.kind);
    setText(this.#place, String(waiter.position));
    setText(this.#what, `${isBarrier ? "barrier: " : ""}${operationName(waiter.operation)}`);
    this.#ages.show(this.#age, at - waiter.age_ms);
    setOrHide(this.#estimate, waiter.estimate_ms === null ? "" : `≈ ${seconds(waiter.estimate_ms)} left`);
  }

  drop() {
    this.#ages.drop(this.#age);
  }
}

/** Requests that are not drawn one by one. */
class Fold {
  element = h("li", { class: "fold" });

  update({ hidden }) {
    setText(this.element, `… ${hidden} more ${hidden === 1 ? "request" : "requests"}`);
  }
}

function summary(queue, waiting) {
  const barriers = queue.filter((waiter) => waiter.kind === "management").length;
  const told = barriers === 0 ? "" : barriers === 1 ? ", 1 a barrier" : `, ${barriers} barriers`;
  return `${waiting} waiting${told}`;
}

function entriesOf(queue, at, isWhole) {
  const entries = [];
  for (const run of runs(queue)) {
    // One that would be hidden alone takes no more room than to say so.
    const drawn = isWhole || run.length <= DRAWN + 1 ? run : run.slice(0, DRAWN);
    entries.push(...drawn.map((waiter) => ({ key: waiter.position, waiter, at })));
    if (drawn.length < run.length) entries.push({ key: `fold ${run[0].position}`, hidden: run.length - drawn.length });
  }
  return entries;
}

/** The queue, cut into barriers and the requests between them. */
function runs(queue) {
  const found = [];
  for (const waiter of queue) {
    const last = found.at(-1);
    if (last && waiter.kind === "request" && last[0].kind === "request") last.push(waiter);
    else found.push([waiter]);
  }
  return found;
}
