/** What a dry run says, for the reader. It makes none. */

import { h } from "../base/dom.js";
import { bytes, duration } from "../base/format.js";

const WAITED = /^(?:(?<model>.+)\/)?(?<what>lease|waiter):[^/]+$/;

/**
 * @param {object} foresight The answer of a dry run, docs/api.md.
 * @returns {HTMLElement}
 */
export function foreseen(foresight) {
  const rows = [
    ["Waits for", waits(foresight.waits_for)],
    ["Unloads", names(foresight.unloads)],
    ["Evicts", names(foresight.evicts)],
    ["Loads", names(foresight.loads)],
    ["In memory", isSame(foresight) ? "all stays as it is" : ""],
    ["Not known", names(foresight.not_found ?? [])],
    ["Memory", memory(foresight)],
    ["Takes about", foresight.estimate_ms === null ? "" : duration(foresight.estimate_ms)],
  ].filter(([, told]) => told !== "");
  return h("dl", { class: "plan" }, ...rows.flatMap(([name, told]) => [h("dt", {}, name), h("dd", {}, told)]));
}

function names(ids) {
  return ids.length === 0 ? "" : h("ul", {}, ...ids.map((id) => h("li", {}, id)));
}

function memory({ loads, memory: { free_bytes: free, needed_bytes: needed } }) {
  return loads.length === 0 ? "" : `${bytes(needed)} of ${bytes(free)} that are free`;
}

function isSame({ unloads, evicts, loads, refusal }) {
  return refusal === null && [unloads, evicts, loads].every((ids) => ids.length === 0);
}

/** "2 running, and the queue", of each model where there are several: the last waiter stands for all before it. */
function waits(waitedFor) {
  const byModel = Map.groupBy(
    waitedFor.map((name) => WAITED.exec(name).groups),
    ({ model }) => model ?? "",
  );
  if (byModel.size === 0) return "nothing";
  const told = [...byModel].map(([model, waited]) => (model ? `${model}: ${counts(waited)}` : counts(waited)));
  return h("ul", {}, ...told.map((text) => h("li", {}, text)));
}

function counts(waited) {
  const running = waited.filter(({ what }) => what === "lease").length;
  return [running && `${running} running`, running < waited.length && "the queue before it"].filter(Boolean).join(", ");
}
