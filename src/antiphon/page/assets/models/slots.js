/** The slots of one model as cells: which are free, and what runs in the others. It knows no queue. */

import { h } from "../base/dom.js";
import { Keyed, setAttribute, setText } from "../parts/in_place.js";

const ALL = "all";

export class SlotCells {
  #cells;

  /** @param {import("./ages.js").Ages} ages */
  constructor(ages) {
    this.element = h("ol", { class: "slots", "aria-label": "Slots" });
    this.#cells = new Keyed(
      this.element,
      ({ slot }) => slot,
      ({ slot }) => new Cell(slot, ages),
    );
  }

  /**
   * @param {{slots: number, leases: {slot: number | null, kind: string, operation: string, age_ms: number}[]}} status
   * @param {number} at When the status was read, by the page's clock in milliseconds.
   */
  update({ slots, leases }, at) {
    const exclusive = leases.find((lease) => lease.slot === null);
    if (exclusive) {
      this.#cells.show([{ slot: ALL, lease: exclusive, at }]);
      return;
    }
    const bySlot = new Map(leases.map((lease) => [lease.slot, lease]));
    this.#cells.show(Array.from({ length: slots }, (_, slot) => ({ slot, lease: bySlot.get(slot) ?? null, at })));
  }

  /** Let go of what the cells hold. */
  drop() {
    this.#cells.show([]);
  }
}

/** One slot, or all of them where one lease has the whole model. */
class Cell {
  #ages;
  #use = h("span", { class: "slot-use" });
  #age = h("span", { class: "age" });

  constructor(slot, ages) {
    this.#ages = ages;
    const name = slot === ALL ? "All slots" : [h("span", { class: "unseen" }, "Slot "), String(slot + 1)];
    this.element = h(
      "li",
      { class: "slot", "data-slot": slot },
      h("span", { class: "slot-name" }, name),
      " ",
      this.#use,
      " ",
      this.#age,
    );
  }

  update({ lease, at }) {
    setAttribute(this.element, "data-use", lease === null ? "free" : lease.kind);
    setText(this.#use, lease === null ? "free" : operationName(lease.operation));
    if (lease === null) this.drop();
    else this.#ages.show(this.#age, at - lease.age_ms);
  }

  drop() {
    this.#ages.drop(this.#age);
  }
}

/** @param {string} operation As the API has it, `bulk_unload`. */
export function operationName(operation) {
  return operation.replaceAll("_", " ");
}
