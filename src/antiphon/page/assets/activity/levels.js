/** How many requests ran and waited, as steps over time. It knows no entry of the journal, and no model. */

/** How many steps are kept. Above that the older half is thinned: of two steps one is left, with the peaks of both. */
export const KEPT_STEPS = 4000;

/**
 * One level, which holds until the next step. Where it is not known (`isKnown` is false) the other two are 0.
 *
 * @typedef {{time: number, active: number, waiting: number, isKnown: boolean, stretch: number}} Step `time` in seconds
 */

/**
 * The steps of one history. It consists of stretches: within one every change is known, between two of them none.
 * A stretch begins with changes alone; `settle` says later from where they counted.
 */
export class Levels {
  /** Now; before `settle` only what the stretch has changed. */
  active = 0;
  waiting = 0;
  /** @type {Step[]} Oldest first. */
  steps = [];

  #stretch = 0;
  #isSettled = false;

  /** Begin a stretch. `isSettled` says that it begins at nothing. */
  begin(time, isSettled = false) {
    this.#isSettled = isSettled;
    this.#push(time, true);
  }

  /** Count so many more, or fewer, from a time on. */
  change(time, active, waiting) {
    this.active += active;
    this.waiting += waiting;
    this.#push(time, true);
  }

  /** Say how the levels are now, and so how they were since the stretch began. */
  settle(active, waiting) {
    const moreActive = active - this.active;
    const moreWaiting = waiting - this.waiting;
    for (const step of this.#ofStretch()) {
      step.active += moreActive;
      step.waiting += moreWaiting;
    }
    this.active = active;
    this.waiting = waiting;
    this.#isSettled = true;
  }

  /** End the stretch: what comes next is not known. A stretch that was never settled is taken to have begun at least. */
  end(time) {
    if (!this.#isSettled) {
      const steps = this.#ofStretch();
      const least = (name) => steps.reduce((found, step) => Math.min(found, step[name]), 0);
      this.settle(this.active - least("active"), this.waiting - least("waiting"));
    }
    this.#stretch += 1;
    this.active = 0;
    this.waiting = 0;
    this.#push(time, false);
  }

  /**
   * The steps from one time to another; the first one is what held when they begin. Where there are more than `most`, those
   * close to each other are told as one with their peaks, except for the last, which is how it is now.
   *
   * @returns {Step[]} They are not to be changed.
   */
  between(from, to, most = KEPT_STEPS) {
    const first = this.steps.findLastIndex((step) => step.time <= from);
    const steps = this.steps.slice(Math.max(0, first)).filter((step) => step.time <= to);
    if (steps.length <= most) return steps;
    const cellOf = (step) => Math.floor(((step.time - from) / (to - from)) * most);
    const merged = [];
    for (const step of steps.slice(0, -1)) {
      const last = merged.at(-1);
      if (last && isAlike(last, step) && cellOf(last) === cellOf(step)) raise(last, step);
      else merged.push({ ...step });
    }
    return [...merged, steps.at(-1)];
  }

  #ofStretch() {
    return this.steps.filter((step) => step.stretch === this.#stretch && step.isKnown);
  }

  #push(wanted, isKnown) {
    const last = this.steps.at(-1);
    const time = Math.max(wanted, last?.time ?? wanted); // a clock that was set back
    const step = { time, active: this.active, waiting: this.waiting, isKnown, stretch: this.#stretch };
    if (last?.time === time && last.stretch === step.stretch && last.isKnown === isKnown) this.steps.pop();
    this.steps.push(step);
    if (this.steps.length > KEPT_STEPS) this.#thin();
  }

  #thin() {
    const half = KEPT_STEPS / 2;
    const thinned = [];
    let isPair = false;
    for (const step of this.steps.slice(0, half)) {
      const last = thinned.at(-1);
      if (last && !isPair && isAlike(last, step)) {
        raise(last, step);
        isPair = true;
      } else {
        thinned.push(step);
        isPair = false;
      }
    }
    this.steps = [...thinned, ...this.steps.slice(half)];
  }
}

function isAlike(step, other) {
  return step.stretch === other.stretch && step.isKnown === other.isKnown;
}

function raise(step, other) {
  step.active = Math.max(step.active, other.active);
  step.waiting = Math.max(step.waiting, other.waiting);
}
