/** When something is drawn that changes all the time. It knows nothing of what. */

/**
 * Draw on frames of the browser's, with so much time between two at least, and only while the element can be seen.
 *
 * @param {HTMLElement} element It has a size of its own, so it is no inline element.
 * @param {number} everyMs milliseconds
 * @param {() => void} draw
 * @returns {() => void} Say that there is something new to draw.
 */
export function drawnWhileSeen(element, everyMs, draw) {
  let isSeen = false;
  let isDue = true;
  let isPlanned = false;
  let lastMs = -everyMs;

  function plan() {
    if (!isSeen || !isDue || isPlanned) return;
    isPlanned = true;
    setTimeout(() => requestAnimationFrame(run), Math.max(0, lastMs + everyMs - performance.now()));
  }

  function run(nowMs) {
    isPlanned = false;
    if (!isSeen) return;
    isDue = false;
    lastMs = nowMs;
    draw();
    plan();
  }

  new IntersectionObserver((seen) => {
    isSeen = seen.at(-1).isIntersecting;
    plan();
  }).observe(element);
  return () => {
    isDue = true;
    plan();
  };
}
