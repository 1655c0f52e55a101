/** The shapes of data, as paths of SVG. It knows no element and no axis. */

/**
 * A line of steps: each value holds until the next row, the last one to the end.
 *
 * @param {{time: number, isKnown?: boolean}[]} rows
 * @param {string} name The field with the value.
 * @param {{x: (time: number) => number, y: (value: number) => number, to: number}} scales `to` is the time at the end.
 */
export function stepLine(rows, name, { x, y, to }) {
  let path = "";
  let isDrawing = false;
  rows.forEach((row, at) => {
    if (row.isKnown !== false) {
      const height = near(y(row[name]));
      path += `${isDrawing ? "V" : `M${near(x(row.time))} `}${height}H${near(x(rows[at + 1]?.time ?? to))}`;
    }
    isDrawing = row.isKnown !== false;
  });
  return path;
}

/** The same with the area below it. */
export function stepArea(rows, name, { x, y, to }) {
  return rows
    .map((row, at) => {
      if (row.isKnown === false || row[name] === 0) return "";
      return box(x(row.time), x(rows[at + 1]?.time ?? to), y(row[name]), y(0));
    })
    .join("");
}

/**
 * Bars, each over a row's interval, on top of those of the names before.
 *
 * @param {string[]} below The fields whose values the bars stand on.
 * @param {{time: number, interval: number}[]} rows `interval` in seconds
 */
export function bars(rows, name, below, { x, y }) {
  return rows
    .map((row) => {
      if (!row[name]) return "";
      const foot = below.reduce((sum, other) => sum + row[other], 0);
      const left = x(row.time);
      const right = x(row.time + row.interval);
      const gap = Math.min(2, (right - left) / 4);
      return box(left + gap / 2, right - gap / 2, y(foot + row[name]), y(foot));
    })
    .join("");
}

/** Boxes over the whole height for spans of time. */
export function spans(pairs, { x, top, bottom }) {
  return pairs.map(([from, to]) => box(x(from), x(to), top, bottom)).join("");
}

function box(left, right, top, bottom) {
  return `M${near(left)} ${near(bottom)}V${near(top)}H${near(right)}V${near(bottom)}Z`;
}

function near(value) {
  return Math.round(10 * value) / 10;
}
