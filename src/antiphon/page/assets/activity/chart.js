/**
 * A chart over time: its axes, what one reads at a point, and the same as a table. It knows neither what it shows nor where
 * that comes from; `marks.js` has the shapes.
 *
 * A point is read with the pointer, or with the keyboard: the drawing is a slider over its rows.
 */

import { fill, h, svg } from "../base/dom.js";
import { clockTime } from "../base/format.js";
import { spans } from "./marks.js";
import { linear, timeStep, timeTicks, valueTicks } from "./scales.js";

const HEIGHT = 190;
const MARGIN = { top: 8, right: 8, bottom: 22, left: 34 };
const TICK_WIDTH = 90; // pixels that the name of a time needs
const MOST_TABLE_ROWS = 60;
const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };

/**
 * @typedef {{from: number, to: number, rows: any[], blanks: [number, number][]}} Picture Times in seconds since 1970. Each row has a
 *   `time` and a value for each series, or `isKnown: false`; `blanks` are the spans of which nothing is known.
 * @typedef {{name: string, label: string, shapes: Record<string, (rows: any[], scales: any) => string>}} Series A shape is
 *   named by its class (`line`, `area`, `bar`) and makes a path.
 */
export class TimeChart extends HTMLElement {
  #picture = { from: 0, to: 1, rows: [], blanks: [] };
  #cursor = null;
  #width = 0;
  #series;
  #top;
  #span;

  /**
   * @param {{title: string, series: Series[], top: (row: any) => number, span?: (row: any, next: any) => string}} look `top` is the
   *   height that a row needs; `span` names the time of a row.
   */
  constructor({ title, series, top, span = (row) => clockTime(row.time) }) {
    super();
    this.#series = series;
    this.#top = top;
    this.#span = span;
    this.#build(title);
    new ResizeObserver(([{ contentRect }]) => {
      this.#width = contentRect.width;
      this.#draw();
    }).observe(this.plot);
  }

  /** @param {Picture} picture */
  show(picture) {
    this.#picture = picture;
    this.#draw();
  }

  #build(title) {
    this.values = new Map(this.#series.map(({ name }) => [name, h("b", {}, "-")]));
    this.when = h("span", { class: "chart-when" });
    const legend = this.#series.map(({ name, label }) =>
      h("span", { class: "chart-key" }, swatch(name), `${label} `, this.values.get(name)),
    );
    this.toggle = h(
      "button",
      {
        type: "button",
        class: "quiet",
        "aria-pressed": "false",
        onclick: () => this.#showTable(this.plot.hidden === false),
      },
      "Show as table",
    );
    this.drawing = svg("svg", { "aria-hidden": "true", height: HEIGHT });
    this.slider = h("div", {
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
    this.#buildDrawing();
    this.plot = h("div", { class: "chart-plot" }, this.drawing, this.slider);
    this.table = h("tbody");
    const heads = ["Time", ...this.#series.map(({ label }) => label)].map((text) => h("th", { scope: "col" }, text));
    const table = h("table", {}, h("thead", {}, h("tr", {}, ...heads)), this.table);
    this.sheet = h(
      "div",
      { class: "chart-sheet", role: "region", "aria-label": `${title}, as a table`, tabIndex: 0, hidden: true },
      table,
    );
    this.append(
      h("div", { class: "chart-head" }, h("h2", {}, title), this.toggle),
      h("div", { class: "chart-legend" }, ...legend, this.when),
      this.plot,
      this.sheet,
    );
  }

  #buildDrawing() {
    this.ticks = svg("g", { class: "chart-ticks" });
    this.blanks = svg("path", { class: "chart-blank" });
    this.cursor = svg("path", { class: "chart-cursor" });
    this.shapes = this.#series.flatMap(({ name, shapes }) =>
      Object.entries(shapes).map(([kind, make]) => ({
        make,
        path: svg("path", { class: `chart-${kind} of-${name}` }),
      })),
    );
    if (!document.getElementById("chart-hatch")) document.body.append(patterns());
    this.drawing.append(this.ticks, this.blanks, ...this.shapes.map(({ path }) => path), this.cursor);
  }

  #draw() {
    const at = this.#cursorRow();
    const row = this.#picture.rows[at];
    for (const { name } of this.#series)
      this.values.get(name).textContent = row?.isKnown === false ? "?" : (row?.[name] ?? "-");
    this.when.textContent = this.#cursor !== null && row ? `at ${this.#nameOf(at)}` : "now";
    this.slider.setAttribute("aria-valuemax", String(Math.max(0, this.#picture.rows.length - 1)));
    this.slider.setAttribute("aria-valuenow", String(Math.max(0, at)));
    if (!this.slider.hasAttribute("aria-valuetext")) this.#speak();
    if (!this.sheet.hidden) this.#drawTable();
    else if (this.#width > 0) this.#drawPlot(at);
  }

  #drawPlot(at) {
    const { from, to, rows, blanks } = this.#picture;
    const values = valueTicks(Math.max(1, ...rows.map((row) => this.#top(row))));
    const right = this.#width - MARGIN.right;
    const bottom = HEIGHT - MARGIN.bottom;
    const scales = {
      x: linear([from, to], [MARGIN.left, right]),
      y: linear([0, values.at(-1)], [bottom, MARGIN.top]),
      to,
    };
    const clamped = { ...scales, x: (time) => Math.min(right, Math.max(MARGIN.left, scales.x(time))) };
    this.drawing.setAttribute("width", String(this.#width));
    this.#drawTicks(values, timeTicks(from, to, timeStep(to - from, this.#width / TICK_WIDTH)), scales, right);
    for (const { make, path } of this.shapes) path.setAttribute("d", make(rows, clamped));
    this.blanks.setAttribute("d", spans(blanks, { x: clamped.x, top: MARGIN.top, bottom }));
    const x = this.#cursor === null || !rows[at] ? null : clamped.x(rows[at].time);
    this.cursor.setAttribute("d", x === null ? "" : `M${x} ${MARGIN.top}V${bottom}`);
  }

  #drawTicks(values, times, { x, y }, right) {
    fill(
      this.ticks,
      values.flatMap((value) => [
        svg("path", { d: `M${MARGIN.left} ${y(value)}H${right}` }),
        svg("text", { x: MARGIN.left - 6, y: y(value) + 4, "text-anchor": "end" }, String(value)),
      ]),
      times
        .filter((time) => x(time) > MARGIN.left + 20 && x(time) < right - TICK_WIDTH / 2 + MARGIN.right)
        .map((time) => svg("text", { x: x(time), y: HEIGHT - 6, "text-anchor": "middle" }, clockTime(time))),
    );
  }

  #drawTable() {
    const { rows } = this.#picture;
    const shown = rows
      .map((row, at) => [row, at])
      .slice(-MOST_TABLE_ROWS)
      .reverse();
    const lines = shown.map(([row, at]) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, this.#nameOf(at)),
        ...this.#series.map(({ name }) => h("td", {}, row.isKnown === false ? "not known" : row[name])),
      ),
    );
    fill(this.table, ...lines);
  }

  #showTable(isTable) {
    this.plot.hidden = isTable;
    this.sheet.hidden = !isTable;
    this.toggle.setAttribute("aria-pressed", String(isTable));
    this.#draw();
  }

  #nameOf(at) {
    const { rows } = this.#picture;
    return this.#span(rows[at], rows[at + 1]);
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
    const { from, to } = this.#picture;
    const { left } = this.slider.getBoundingClientRect();
    const time = linear([MARGIN.left, this.#width - MARGIN.right], [from, to])(event.clientX - left);
    this.#read(Math.min(to, Math.max(from, time)));
  }

  #step(event) {
    const last = this.#picture.rows.length - 1;
    const now = this.#cursorRow();
    const target = { Home: 0, End: last }[event.key] ?? now + STEPS[event.key];
    if (event.key === "Escape") this.#read(null);
    else if (Number.isNaN(target) || last < 0) return;
    else this.#read(this.#picture.rows[Math.min(last, Math.max(0, target))].time);
    event.preventDefault();
    this.#speak();
  }

  /** Say what the slider's row tells; only when the reader comes or moves, or it would speak without end. */
  #speak() {
    const at = this.#cursorRow();
    const row = this.#picture.rows[at];
    if (!row) return;
    const told = row.isKnown === false ? ["not known"] : this.#series.map(({ name, label }) => `${label} ${row[name]}`);
    this.slider.setAttribute("aria-valuetext", `${this.#nameOf(at)}: ${told.join(", ")}`);
  }
}

customElements.define("antiphon-time-chart", TimeChart);

function swatch(name) {
  const path = svg("rect", { class: `chart-bar of-${name}`, width: 12, height: 12, rx: 3 });
  return svg("svg", { class: "chart-swatch", width: 12, height: 12, "aria-hidden": "true" }, path);
}

/** What tells series apart where colours do not. Once for all: a drawing that is hidden lends none to another. */
function patterns() {
  const pattern = (id, d) =>
    svg(
      "pattern",
      { id, class: id, width: 6, height: 6, patternUnits: "userSpaceOnUse" },
      svg("rect", { width: 6, height: 6 }),
      svg("path", { d }),
    );
  const all = { "chart-hatch": "M-1 7L7 -1", "chart-dots": "M2 3h2", "chart-void": "M-1 -1L7 7" };
  return svg(
    "svg",
    { class: "unseen", "aria-hidden": "true" },
    ...Object.entries(all).map(([id, d]) => pattern(id, d)),
  );
}
