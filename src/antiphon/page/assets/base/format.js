/** Numbers as people read them. It knows units, and nothing that has them. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
const FINE = new Intl.DateTimeFormat(undefined, {
  hour: "numeric",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 2,
});

/** @param {number | null} count Bytes. */
export function bytes(count) {
  if (count === null || count === undefined) return "-";
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** @param {number | null} ms Milliseconds: "12 ms", "1.2 s", "3 min 05 s". */
export function duration(ms) {
  if (ms === null || ms === undefined) return "-";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor(seconds / 60) % 60)} min`;
}

/** @param {number} seconds A place in a recording: "0:07", "1:02:03". */
export function place(seconds) {
  const whole = Math.floor(seconds);
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes}:${two(whole % 60)}`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)}`;
}

/** @param {number} time Seconds since 1970, as the reader's clock shows it. */
export function clockTime(time) {
  return new Date(1000 * time).toLocaleTimeString();
}

/** @param {number} time As `clockTime`, to a hundredth of a second. */
export function fineTime(time) {
  return FINE.format(1000 * time);
}

function two(value) {
  return String(value).padStart(2, "0");
}
