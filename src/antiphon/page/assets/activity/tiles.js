/** The numbers at the top of the view. It shows them, and computes none. */

import { h } from "../base/dom.js";
import { duration } from "../base/format.js";
import { setText } from "../parts/in_place.js";
import { reasonText } from "./words.js";

const TILES = {
  running: "Running now",
  waiting: "Waiting now",
  rate: "Requests a minute",
  wait: "Wait for a slot, p50",
  run: "Time in the slot, p50",
  refused: "Refused",
  faults: "Faults of models",
  connection: "Connection",
};
const CONNECTIONS = { connecting: "Connecting", live: "Live", lost: "Lost", locked: "No key" };

/**
 * What the tiles show.
 *
 * @typedef {{levels: {active: number, waiting: number} | null, slots: number, summary: any, minutes: number, connection: string}} Numbers
 *   `summary` is one of `Outcomes`, over so many minutes
 */
export class Tiles extends HTMLElement {
  constructor() {
    super();
    this.values = new Map();
    this.notes = new Map();
    const tiles = Object.entries(TILES).map(([name, label]) => this.#tile(name, label));
    this.append(h("dl", { class: "tiles" }, ...tiles));
  }

  /** @param {Numbers} numbers */
  show({ levels, slots, summary, minutes, connection }) {
    const { finished, refused, left, reasons, evicted, died, load_failed: failed } = summary;
    this.#set(
      "running",
      levels?.active ?? "-",
      connection === "live" ? `of ${plural(slots, "slot")}` : "when last heard",
    );
    this.#set("waiting", levels?.waiting ?? "-", connection === "live" ? "for a slot" : "when last heard");
    this.#set(
      "rate",
      rate((finished + refused + left) / minutes),
      `${finished} finished, ${refused} refused, ${left} left`,
    );
    this.#set("wait", ...latency(summary.wait));
    this.#set("run", ...latency(summary.run));
    this.#set("refused", refused, told(reasons), refused > 0 ? "bad" : "");
    const others = `${plural(died, "death")}, ${plural(failed, "failed load")}, ${plural(evicted, "eviction")}`;
    this.#set("faults", died + failed, others, died + failed > 0 ? "bad" : "");
    this.#set(
      "connection",
      CONNECTIONS[connection],
      connection === "live" ? "heard as it happens" : "what was heard stays",
      tone(connection),
    );
  }

  #tile(name, label) {
    const value = h("dd", { class: "tile-value" }, "-");
    const note = h("dd", { class: "tile-note" });
    this.values.set(name, value);
    this.notes.set(name, note);
    return h("div", { class: "tile", "data-tile": name }, h("dt", {}, label), value, note);
  }

  #set(name, value, note, toneName = "") {
    const element = this.values.get(name);
    setText(element, String(value));
    setText(this.notes.get(name), String(note));
    element.parentElement.dataset.tone = toneName;
  }
}

customElements.define("antiphon-tiles", Tiles);

function latency({ p50, p90, p99 }) {
  const [half, most, nearly] = [p50, p90, p99].map((seconds) => (seconds === null ? "-" : duration(1000 * seconds)));
  return [half, `p90 ${most}, p99 ${nearly}`];
}

function rate(value) {
  return value >= 10 ? Math.round(value) : Math.round(10 * value) / 10;
}

function told(reasons) {
  const parts = Object.entries(reasons).map(([reason, count]) => `${count}: ${reasonText(reason)}`);
  return parts.length > 0 ? parts.join("; ") : "nobody";
}

function plural(count, one) {
  return `${count} ${count === 1 ? one : `${one}s`}`;
}

function tone(connection) {
  return connection === "live" ? "" : "busy";
}
