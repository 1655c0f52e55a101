/**
 * The view "Activity": which model, which time, and its parts: numbers, charts, journal. What the entries mean is the ledger's;
 * what they say is the journal's.
 */

import { h } from "../base/dom.js";
import { clockTime, fineTime } from "../base/format.js";
import { drawnWhileShown } from "../parts/drawing.js";
import { choice, field } from "../parts/fields.js";
import { setText } from "../parts/in_place.js";
import { modelSelect } from "../parts/models_of.js";
import { TimeChart } from "./chart.js";
import { Journal } from "./journal.js";
import { Ledger, seqOf } from "./ledger.js";
import { bars, stepArea, stepLine } from "./marks.js";
import { timeStep } from "./scales.js";
import { ServerClock } from "./server_clock.js";
import { Tiles } from "./tiles.js";

const TASKS = ["tts", "asr", "diar", "vad", "align"];
const WINDOWS = [
  ["60", "1 minute"],
  ["300", "5 minutes"],
  ["900", "15 minutes"],
  ["", "All that is kept"],
];
const FIRST_WINDOW = "300";
const DRAW_EVERY_MS = 250;
const TIME_PASSES_MS = 1000;
const MOST_STEPS = 400;
const MOST_BARS = 40;
const LEAST_S = 60; // of "all that is kept": a shorter history is drawn on so wide an axis

export class ActivityView extends HTMLElement {
  #clock = new ServerClock();
  #lostAt = null;
  #draw = () => {};

  constructor(feed) {
    super();
    this.feed = feed;
    this.ledger = new Ledger();
    this.journal = new Journal(() => feed.entries);
    this.#build();
    this.#draw = drawnWhileShown(this, DRAW_EVERY_MS, () => this.#show());
    this.#listen();
  }

  #build() {
    this.model = modelSelect(this.feed, TASKS, "All models");
    this.model.addEventListener("change", () => this.#chooseModel());
    this.span = choice(WINDOWS, { onchange: () => this.#draw() });
    this.span.value = FIRST_WINDOW;
    this.known = h("p", { class: "activity-known" });
    this.tiles = new Tiles();
    this.levels = levelsChart();
    this.ends = endsChart();
    this.append(
      h(
        "div",
        { class: "activity-head" },
        h("h1", {}, "Activity"),
        field("Model", this.model),
        field("Time", this.span),
      ),
      this.known,
      this.tiles,
      h(
        "div",
        { class: "activity-charts" },
        h("div", { class: "card" }, this.levels),
        h("div", { class: "card" }, this.ends),
      ),
      h("div", { class: "card" }, this.journal),
    );
  }

  #listen() {
    const { feed } = this;
    this.#countEarlier();
    feed.addEventListener("entry", ({ detail }) => {
      this.#count(detail);
      this.journal.take(detail);
      this.#draw();
    });
    feed.addEventListener("status", () => {
      this.ledger.compare(feed.status);
      this.#draw();
    });
    feed.addEventListener("connection", () => this.#noteConnection());
    setInterval(() => this.#draw(), TIME_PASSES_MS);
    this.#noteConnection();
  }

  /** Count what came before this view was first shown. The status is of the run of the server that the last entries are of. */
  #countEarlier() {
    const { entries, status } = this.feed;
    const afterGap = entries.findLastIndex(({ type }) => type === "gap") + 1;
    for (const entry of entries.slice(0, afterGap)) this.#count(entry);
    if (status) this.ledger.compare(status);
    for (const entry of entries.slice(afterGap)) this.#count(entry);
  }

  #count(entry) {
    if ("seq" in entry) this.#clock.hear(entry.time, this.feed.status !== null && entry.seq > seqOf(this.feed.status));
    this.ledger.take(entry);
  }

  #noteConnection() {
    if (this.feed.connection === "live") this.#lostAt = null;
    else this.#lostAt ??= this.#clock.now();
    this.#draw();
  }

  #chooseModel() {
    this.journal.showModel(this.model.value);
    this.#draw();
  }

  #show() {
    const to = this.#clock.now();
    const { ledger } = this;
    const from = this.span.value ? to - Number(this.span.value) : Math.min(ledger.knownSince ?? to, to - LEAST_S);
    const model = this.model.value;
    this.#showKnown(from);
    this.tiles.show({
      levels: ledger.now(model),
      slots: this.#slots(model),
      summary: ledger.outcomes.summary(from, model),
      minutes: Math.max(LEAST_S, to - Math.max(from, ledger.knownSince ?? from)) / 60,
      connection: this.feed.connection,
    });
    this.#showCharts(from, to, model);
  }

  #showCharts(from, to, model) {
    const steps = this.ledger.steps(from, to, model, MOST_STEPS).map((step) => startingAt(step, from));
    if (this.#lostAt !== null)
      steps.push({ time: Math.max(from, this.#lostAt), active: 0, waiting: 0, isKnown: false });
    const blanks = steps.flatMap((step, at) => (step.isKnown ? [] : [[step.time, steps[at + 1]?.time ?? to]]));
    this.levels.show({ from, to, rows: steps, blanks });
    const interval = timeStep(to - from, MOST_BARS);
    const rows = this.ledger.outcomes
      .bars(from, to, interval, model)
      .map((bar) => known({ ...bar, interval }, blanks, to));
    this.ends.show({ from, to, rows, blanks });
  }

  #showKnown(from) {
    const { knownSince } = this.ledger;
    const text = knownSince !== null && knownSince > from ? `What is kept begins at ${clockTime(knownSince)}.` : "";
    setText(this.known, text);
  }

  #slots(model) {
    const models = (this.feed.status?.models ?? []).filter(({ id }) => !model || id === model);
    return models.reduce((sum, { slots }) => sum + slots, 0);
  }
}

customElements.define("antiphon-activity", ActivityView);

function startingAt(step, from) {
  return step.time < from ? { ...step, time: from } : step;
}

/** A bar that says where it is not known, because all of it is in a gap. */
function known(bar, blanks, to) {
  const end = Math.min(bar.time + bar.interval, to);
  return blanks.some((blank) => blank[0] <= bar.time && end <= blank[1]) ? { ...bar, isKnown: false } : bar;
}

function levelsChart() {
  return new TimeChart({
    title: "Running and waiting",
    series: [
      {
        name: "active",
        label: "Running",
        shapes: {
          area: (rows, scales) => stepArea(rows, "active", scales),
          line: (rows, scales) => stepLine(rows, "active", scales),
        },
      },
      { name: "waiting", label: "Waiting", shapes: { line: (rows, scales) => stepLine(rows, "waiting", scales) } },
    ],
    top: ({ active, waiting }) => Math.max(active, waiting),
    span: ({ time }) => fineTime(time),
  });
}

function endsChart() {
  const shape = (name, below) => ({ bar: (rows, scales) => bars(rows, name, below, scales) });
  return new TimeChart({
    title: "How requests ended",
    series: [
      { name: "finished", label: "Finished", shapes: shape("finished", []) },
      { name: "refused", label: "Refused", shapes: shape("refused", ["finished"]) },
      { name: "left", label: "Left", shapes: shape("left", ["finished", "refused"]) },
    ],
    top: ({ finished, refused, left }) => finished + refused + left,
    span: ({ time, interval }) => `${clockTime(time)} to ${clockTime(time + interval)}`,
  });
}
