/** What may be done to models: what each asks of the server, and how it is told. It shows nothing itself. */

import { callJson } from "../base/api.js";
import { h } from "../base/dom.js";
import { bytes } from "../base/format.js";
import { choice, field } from "../parts/fields.js";
import { openPlan } from "./plan_dialog.js";

const LOAD = "v1/models/load";
const UNLOAD = "v1/models/unload";
const UNLOAD_SOME = "v1/tasks/unload_models";
const UNLOAD_ALL = "v1/tasks/unload_all_models";
const MAX_SLOTS = 16;
const STRATEGIES = [
  ["replace", "Unload it, then load it"],
  ["side_by_side", "Side by side"],
];
const SIDE_BY_SIDE = "Side by side builds the new one first, where memory allows, so that nobody waits for a load.";

/** Plans of a view. Each method opens a dialog that shows the dry run; what is confirmed goes on in `operations`. */
export class Plans {
  /**
   * @param {import("../base/feed.js").Feed} feed
   * @param {import("./operations.js").Operations} operations
   */
  constructor(feed, operations) {
    this.feed = feed;
    this.operations = operations;
  }

  load(id) {
    this.open({ title: `Load ${id}`, verb: "Load", path: LOAD, body: () => ({ id }) }, () => "is in memory");
  }

  unload(id) {
    const plan = { title: `Unload ${id}`, verb: "Unload", path: UNLOAD, body: () => ({ id }), isDangerous: true };
    this.open(plan, returned);
  }

  /** @param {string[] | null} ids null is all that the server has when it is asked. */
  unloadSome(ids) {
    const path = ids === null ? UNLOAD_ALL : UNLOAD_SOME;
    const title = ids === null ? "Unload every model" : `Unload ${ids.length} ${ids.length === 1 ? "model" : "models"}`;
    const body = () => (ids === null ? {} : { model_ids: ids });
    this.open({ title, verb: "Unload", path, body, isDangerous: true }, unloaded);
  }

  /** Another number of slots for a model that is registered: the rest of its registration stays. */
  async slots(id, maxParallel) {
    const registration = await callJson(`v1/ui/models/${encodeURIComponent(id)}`);
    const number = h("input", { type: "number", min: 1, max: MAX_SLOTS, value: registration.slots, required: true });
    const strategy = choice(STRATEGIES);
    const hint = maxParallel === null ? "" : `As it is loaded it can serve up to ${maxParallel} at once.`;
    const fields = h("div", { class: "fields" }, field("Slots", number, hint), field("How", strategy, SIDE_BY_SIDE));
    const asked = () => ({ ...registration, slots: number.valueAsNumber, strategy: strategy.value });
    const body = () => (number.validity.valid ? asked() : null);
    this.open(
      { title: `Change the slots of ${id}`, verb: "Change", path: LOAD, body, fields: [fields] },
      () => "is done",
    );
  }

  /** @param {(answer: any) => string} tell What is said of its end. */
  open(plan, tell) {
    const start = (body) =>
      this.operations.begin(plan.title, async () => {
        const answer = await callJson(plan.path, { json: body }).finally(() => this.feed.refresh());
        return tell(answer);
      });
    openPlan({ ...plan, start });
  }
}

function returned({ memory }) {
  const gave = memory?.returned_bytes ?? 0;
  return gave > 0 ? `is unloaded; ${bytes(gave)} came back` : "is unloaded";
}

function unloaded({ unloaded: done, not_found: unknown }) {
  const told = done.length === 0 ? "nothing to unload" : `unloaded: ${done.join(", ")}`;
  return unknown.length === 0 ? told : `${told}; not known: ${unknown.join(", ")}`;
}
