/** How requests ended, and what befell models, with the numbers that follow from them. It knows no entry of the journal. */

/** How many are kept at least, of all models together, and half as many more at most; the oldest go first. */
export const KEPT_OUTCOMES = 20_000;

const PERCENTILES = { p50: 0.5, p90: 0.9, p99: 0.99 };

/**
 * `what` is `finished`, `refused` or `left` of a request, `evicted`, `died` or `load_failed` of a model. `waitS` and `runS`
 * are of what finished: the time until it had its slot, and the time that it had it, in seconds; null where its
 * beginning is not known. `reason` is why it was refused.
 *
 * @typedef {{time: number, model: string, what: string, waitS?: number | null, runS?: number | null, reason?: string}} Outcome
 * `time` in seconds since 1970
 * @typedef {{p50: number | null, p90: number | null, p99: number | null}} Percentiles seconds; null where there are none
 */

export class Outcomes {
  /** @type {Outcome[]} Oldest first. */
  kept = [];
  /** Whether older ones were let go. */
  isCut = false;

  /** @param {Outcome} outcome */
  add(outcome) {
    this.kept.push(outcome);
    if (this.kept.length <= 1.5 * KEPT_OUTCOMES) return;
    this.kept = this.kept.slice(-KEPT_OUTCOMES);
    this.isCut = true;
  }

  /** @returns {Outcome[]} Those of a model ("" is every one) since a time, newest first. */
  since(from, model = "") {
    const found = [];
    for (let at = this.kept.length - 1; at >= 0 && this.kept[at].time >= from; at -= 1) {
      if (!model || this.kept[at].model === model) found.push(this.kept[at]);
    }
    return found;
  }

  /**
   * @returns {{finished: number, refused: number, left: number, evicted: number, died: number, load_failed: number,
   *   reasons: Record<string, number>, wait: Percentiles, run: Percentiles}}
   */
  summary(from, model = "") {
    const outcomes = this.since(from, model);
    const counts = { finished: 0, refused: 0, left: 0, evicted: 0, died: 0, load_failed: 0 };
    const reasons = {};
    for (const { what, reason } of outcomes) {
      counts[what] += 1;
      if (what === "refused") reasons[reason] = (reasons[reason] ?? 0) + 1;
    }
    const known = (name) => outcomes.map((outcome) => outcome[name]).filter(Number.isFinite);
    return { ...counts, reasons, wait: percentiles(known("waitS")), run: percentiles(known("runS")) };
  }

  /**
   * The ends of requests, counted in intervals that begin at multiples of their length.
   *
   * @param {number} interval seconds
   * @returns {{time: number, finished: number, refused: number, left: number}[]} Every interval, oldest first.
   */
  bars(from, to, interval, model = "") {
    const first = Math.floor(from / interval);
    const count = Math.floor(to / interval) - first + 1;
    const bars = Array.from({ length: count }, (_, at) => ({
      time: (first + at) * interval,
      finished: 0,
      refused: 0,
      left: 0,
    }));
    for (const { time, what } of this.since(first * interval, model)) {
      const bar = bars[Math.floor(time / interval) - first];
      if (bar && what in bar) bar[what] += 1;
    }
    return bars;
  }
}

/**
 * By nearest rank: the smallest value that so large a part of them does not exceed.
 *
 * @param {number[]} values
 * @returns {Percentiles}
 */
export function percentiles(values) {
  const sorted = Float64Array.from(values).sort();
  const at = (part) => (sorted.length === 0 ? null : sorted[Math.ceil(part * sorted.length) - 1]);
  return Object.fromEntries(Object.entries(PERCENTILES).map(([name, part]) => [name, at(part)]));
}
