/** From values to places in a drawing, and where its axes have ticks. It draws nothing. */

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400];
const MOST_VALUE_TICKS = 5;

/** @returns {number} The shortest usual length of time, in seconds, that fits into a span at most so many times. */
export function timeStep(spanS, most) {
  return (
    TIME_STEPS.find((step) => spanS / step <= most) ?? TIME_STEPS.at(-1) * Math.ceil(spanS / TIME_STEPS.at(-1) / most)
  );
}

/** The whole numbers that an axis from 0 to at least `top` has ticks at, the first one 0. */
export function valueTicks(top) {
  let step = 1;
  for (let at = 0; step * (MOST_VALUE_TICKS - 1) < top; at += 1) step *= [2, 2.5, 2][at % 3];
  return Array.from({ length: Math.max(2, Math.ceil(top / step) + 1) }, (_, at) => at * step);
}

/** The times within a span at multiples of a step of the reader's own clock. Units: seconds. */
export function timeTicks(from, to, stepS) {
  const shift = 60 * new Date(1000 * to).getTimezoneOffset();
  const first = Math.ceil((from - shift) / stepS) * stepS + shift;
  return Array.from({ length: Math.max(0, Math.floor((to - first) / stepS) + 1) }, (_, at) => first + at * stepS);
}

/** A function that takes a domain to a range. */
export function linear([from, to], [start, end]) {
  const factor = to === from ? 0 : (end - start) / (to - from);
  return (value) => start + (value - from) * factor;
}
