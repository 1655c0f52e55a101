/** How long things have gone on: texts that grow by themselves between two readings of the status. It reads none. */

import { setText } from "../parts/in_place.js";

const TICK_MS = 1000; // as often as a whole second changes

/** All ages of a view, which grow in one tick. */
export class Ages {
  #since = new Map();

  /** @param {() => boolean} isSeen Whether anybody can see them; else they do not grow. */
  constructor(isSeen) {
    setInterval(() => {
      if (isSeen()) this.#tick();
    }, TICK_MS);
  }

  /**
   * Let an element show an age from now on.
   *
   * @param {HTMLElement} element
   * @param {number} since When it began, by the page's clock (`performance.now()`, milliseconds).
   */
  show(element, since) {
    this.#since.set(element, since);
    setText(element, seconds(performance.now() - since));
  }

  /** Let an element show none. */
  drop(element) {
    this.#since.delete(element);
    setText(element, "");
  }

  #tick() {
    const now = performance.now();
    for (const [element, since] of this.#since) setText(element, seconds(now - since));
  }
}

/** @param {number | null} ms Milliseconds, told in whole seconds: an age that flickers tells nobody more. */
export function seconds(ms) {
  const whole = Math.max(0, Math.floor(ms / 1000));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}
