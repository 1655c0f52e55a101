/**
 * A chart over time: its plot, what one reads at a point, and the same as a table. It knows neither what it shows nor where that
 * comes from.
 *
 * A point is read with the pointer, or with the keyboard: the plot is a slider over its rows.
 */

import { fill, h, svg } from "../base/dom.js";
import { clockTime } from "../base/format.js";
import { Plot } from "./plot.js";

const MOST_TABLE_ROWS = 60;
const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };

/**
 * @typedef {{from: number, to: number, rows: any[], blanks: [number, number][]}} Picture Times in seconds since 1970. Each row has a
 *   `time` and a value for each series, or `isKnown: false`; `blanks` are the spans of which nothing is known.
 * @typedef {{name: string, label: string, shapes: Record<string, (rows: any[], scales: any) => string>}} Series A shape is
 *   named by its class (`line`, `area`, `bar`) and makes a path, as `marks.js` does.
 */
export class TimeChart extends HTMLElement {
  #picture = { from: 0, to: 1, rows: [], blanks: [] };
  /** The time that is read, or null for the newest row. */
  #cursor = null;
  #series;
  #span;
  #plot;
  #values;
  #when = h("span", { class: "chart-when" });
  #lines = h("tbody");
  #toggle = h(
    "button",
    { type: "button", class: "quiet", "aria-pressed": "false", onclick: () => this.#toggleTable() },
    "Show as table",
  );
  #slider;
  #drawing;
  #sheet;

  /**
   * @param {{title: string, series: Series[], top: (row: any) => number, span?: (row: any) => string}} look `top` is the height that a
   *   row needs; `span` names the time of a row.
   */
  constructor({ title, series, top, span = (row) => clockTime(row.time) }) {
    super();
    this.#series = series;
    this.#span = span;
    this.#plot = new Plot(series, top);
    this.#values = new Map(series.map(({ name }) => [name, h("b", {}, "-")]));
    this.#slider = this.#sliderOf(title);
    this.#drawing = h("div", { class: "chart-plot" }, this.#plot.element, this.#slider);
    this.#sheet = this.#sheetOf(title);
    const head = h("div", { class: "chart-head" }, h("h2", {}, title), this.#toggle);
    this.append(head, this.#legend(), this.#drawing, this.#sheet);
    new ResizeObserver(([{ contentRect }]) => {
      this.#plot.width = contentRect.width;
      this.#draw();
    }).observe(this.#drawing);
  }

  /** @param {Picture} picture */
  show(picture) {
    this.#picture = picture;
    this.#draw();
  }

  #legend() {
    const keys = this.#series.map(({ name, label }) =>
      h("span", { class: "chart-key" }, swatch(name), `${label} `, this.#values.get(name)),
    );
    return h("div", { class: "chart-legend" }, ...keys, this.#when);
  }

  #sliderOf(title) {
    return h("div", {
      class: "chart-slider",
      role: "slider",
      tabIndex: 0,
      "aria-label": `${title}: a point in time`,
      "aria-valuemin": 0,
      onkeydown: (event) => this.#step(event),
      onfocus: () => this.#speak(),
      onpointermove: (event) => this.#point(event),
      onpointerdown: (event) => this.#point(event),
      onpointerleave: () => this.#read(null),
    });
  }

  #sheetOf(title) {
    const heads = ["Time", ...this.#series.map(({ label }) => label)].map((text) => h("th", { scope: "col" }, text));
    const look = {
      class: "chart-sheet",
      role: "region",
      "aria-label": `${title}, as a table`,
      tabIndex: 0,
      hidden: true,
    };
    return h("div", look, h("table", {}, h("thead", {}, h("tr", {}, ...heads)), this.#lines));
  }

  #draw() {
    const at = this.#cursorRow();
    const row = this.#picture.rows[at] ?? null;
    for (const { name } of this.#series) this.#values.get(name).textContent = shownValue(row, name, "?");
    const isRead = this.#cursor !== null && row !== null;
    this.#when.textContent = isRead ? `at ${this.#span(row)}` : "now";
    this.#slider.setAttribute("aria-valuemax", String(Math.max(0, this.#picture.rows.length - 1)));
    this.#slider.setAttribute("aria-valuenow", String(Math.max(0, at)));
    if (!this.#slider.hasAttribute("aria-valuetext")) this.#speak();
    if (this.#sheet.hidden) this.#plot.draw(this.#picture, isRead ? row : null);
    else this.#fillTable();
  }

  #fillTable() {
    const shown = this.#picture.rows.slice(-MOST_TABLE_ROWS).reverse();
    const cells = (row) => this.#series.map(({ name }) => h("td", {}, String(shownValue(row, name, "not known"))));
    fill(this.#lines, ...shown.map((row) => h("tr", {}, h("th", { scope: "row" }, this.#span(row)), ...cells(row))));
  }

  #toggleTable() {
    const isTable = this.#sheet.hidden;
    this.#drawing.hidden = isTable;
    this.#sheet.hidden = !isTable;
    this.#toggle.setAttribute("aria-pressed", String(isTable));
    this.#draw();
  }

  /** The row that is read: the last one that began before the cursor, or the newest. */
  #cursorRow() {
    const { rows } = this.#picture;
    if (this.#cursor === null) return rows.length - 1;
    return Math.max(
      0,
      rows.findLastIndex((row) => row.time <= this.#cursor),
    );
  }

  #read(time) {
    this.#cursor = time;
    this.#draw();
  }

  #point(event) {
    const { left } = this.#slider.getBoundingClientRect();
    this.#read(this.#plot.timeAt(event.clientX - left, this.#picture));
  }

  #step(event) {
    const last = this.#picture.rows.length - 1;
    const target = { Home: 0, End: last }[event.key] ?? this.#cursorRow() + STEPS[event.key];
    if (event.key === "Escape") this.#read(null);
    else if (Number.isNaN(target) || last < 0) return;
    else this.#read(this.#picture.rows[Math.min(last, Math.max(0, target))].time);
    event.preventDefault();
    this.#speak();
  }

  /** Say what the row is that is read; only when the reader comes or moves, or it would speak without end. */
  #speak() {
    const row = this.#picture.rows[this.#cursorRow()];
    if (!row) return;
    const told = this.#series.map(({ name, label }) => `${label} ${shownValue(row, name, "not known")}`);
    this.#slider.setAttribute("aria-valuetext", `${this.#span(row)}: ${told.join(", ")}`);
  }
}

customElements.define("antiphon-time-chart", TimeChart);

function shownValue(row, name, unknown) {
  if (row === null) return "-";
  return row.isKnown === false ? unknown : row[name];
}

function swatch(name) {
  const path = svg("rect", { class: `chart-bar of-${name}`, width: 12, height: 12, rx: 3 });
  return svg("svg", { class: "chart-swatch", width: 12, height: 12, "aria-hidden": "true" }, path);
}
