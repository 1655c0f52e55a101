/** When something is drawn that changes all the time. It knows nothing of what. */

/**
 * Draw on frames of the browser's, with so much time between two at least, and only while the element's view is shown. Where it is
 * scrolled to does not count: who hears the page reads all of it.
 *
 * @param {HTMLElement} element Never without height while it is shown.
 * @param {number} everyMs milliseconds
 * @param {() => void} draw
 * @returns {() => void} Say that there is something new to draw.
 */
export function drawnWhileShown(element, everyMs, draw) {
  let isShown = false;
  let isDue = true;
  let isPlanned = false;
  let lastMs = -everyMs;

  function plan() {
    if (!isShown || !isDue || isPlanned) return;
    isPlanned = true;
    setTimeout(() => requestAnimationFrame(run), Math.max(0, lastMs + everyMs - performance.now()));
  }

  function run(nowMs) {
    isPlanned = false;
    if (!isShown) return;
    isDue = false;
    lastMs = nowMs;
    draw();
    plan();
  }

  new ResizeObserver(([{ contentRect }]) => {
    isShown = contentRect.height > 0;
    plan();
  }).observe(element);
  return () => {
    isDue = true;
    plan();
  };
}
