/** The drawing of a chart over time: axes, marks, and a line where it is read. It hears nobody, and has no numbers in words. */

import { fill, svg } from "../base/dom.js";
import { clockTime } from "../base/format.js";
import { spans } from "./marks.js";
import { linear, timeStep, timeTicks, valueTicks } from "./scales.js";

const HEIGHT = 190; // as in activity.css
const MARGIN = { top: 8, right: 8, bottom: 22, left: 34 };
const BOTTOM = HEIGHT - MARGIN.bottom;
const TICK_WIDTH = 90; // that the name of a time needs

/** Lengths are in pixels, times in seconds since 1970. */
export class Plot {
  #series;
  #top;
  #width = 0;
  #ticks = svg("g", { class: "chart-ticks" });
  #blanks = svg("path", { class: "chart-blank" });
  #cursor = svg("path", { class: "chart-cursor" });
  #shapes;

  /**
   * @param {import("./chart.js").Series[]} series
   * @param {(row: any) => number} top The height that a row needs.
   */
  constructor(series, top) {
    this.#series = series;
    this.#top = top;
    this.#shapes = this.#series.flatMap(({ name, shapes }) =>
      Object.entries(shapes).map(([kind, make]) => ({
        make,
        path: svg("path", { class: `chart-${kind} of-${name}` }),
      })),
    );
    const paths = this.#shapes.map(({ path }) => path);
    this.element = svg("svg", { "aria-hidden": "true", height: HEIGHT });
    this.element.append(this.#ticks, this.#blanks, ...paths, this.#cursor);
    if (!document.getElementById("chart-hatch")) document.body.append(patterns());
  }

  /** Be so wide; with 0, because it is not shown, nothing is drawn. */
  set width(width) {
    this.#width = width;
    this.element.setAttribute("width", String(width));
  }

  /** The time at a place, from the left of the drawing. */
  timeAt(x, { from, to }) {
    const time = linear([MARGIN.left, this.#right], [from, to])(x);
    return Math.min(to, Math.max(from, time));
  }

  /**
   * @param {import("./chart.js").Picture} picture
   * @param {any} row The row that is read, or null.
   */
  draw({ from, to, rows, blanks }, row) {
    if (this.#width === 0) return;
    const values = valueTicks(Math.max(1, ...rows.map(this.#top)));
    const y = linear([0, values.at(-1)], [BOTTOM, MARGIN.top]);
    const place = linear([from, to], [MARGIN.left, this.#right]);
    const x = (time) => Math.min(this.#right, Math.max(MARGIN.left, place(time)));
    this.#drawTicks(values, timeTicks(from, to, timeStep(to - from, this.#width / TICK_WIDTH)), { x, y });
    for (const { make, path } of this.#shapes) path.setAttribute("d", make(rows, { x, y, to }));
    this.#blanks.setAttribute("d", spans(blanks, { x, top: MARGIN.top, bottom: BOTTOM }));
    this.#cursor.setAttribute("d", row ? `M${x(row.time)} ${MARGIN.top}V${BOTTOM}` : "");
  }

  get #right() {
    return this.#width - MARGIN.right;
  }

  #drawTicks(values, times, { x, y }) {
    const named = times.filter((time) => x(time) > MARGIN.left + 20 && x(time) < this.#width - TICK_WIDTH / 2);
    fill(
      this.#ticks,
      values.map((value) => svg("path", { d: `M${MARGIN.left} ${y(value)}H${this.#right}` })),
      values.map((value) => label(MARGIN.left - 6, y(value) + 4, "end", value)),
      named.map((time) => label(x(time), HEIGHT - 6, "middle", clockTime(time))),
    );
  }
}

function label(x, y, anchor, text) {
  return svg("text", { x, y, "text-anchor": anchor }, String(text));
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
