/** A select of the models for a task, kept up to date. */

import { h } from "../base/dom.js";
import { setChoices } from "./fields.js";

/**
 * @param {import("../base/feed.js").Feed} feed
 * @param {string[]} tasks `tts`, `asr`, `diar`, `vad`, `align`.
 * @param {string} [none] The label of a first option that stands for no model (value ""); without, there is none.
 * @returns {HTMLSelectElement} It tells of a change of its choices with a `change` event, as of a choice.
 */
export function modelSelect(feed, tasks, none = "") {
  const select = h("select");
  const update = () => {
    const before = select.value;
    const models = feed.models.filter((model) => tasks.includes(model.task));
    const pairs = models.map((model) => [model.id, model.id]);
    setChoices(select, none ? [["", none], ...pairs] : pairs);
    select.disabled = pairs.length === 0;
    if (select.value !== before) select.dispatchEvent(new Event("change"));
  };
  feed.addEventListener("models", update);
  update();
  return select;
}
