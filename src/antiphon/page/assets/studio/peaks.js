/** How far a sound swings, stretch by stretch, in memory that does not grow with it. It draws nothing. */

/** How many stretches are kept: more than a screen has columns. When there are as many, each two become one. */
const MOST_STRETCHES = 8192;
const FIRST_STRETCH_FRAMES = 64;

/** The peaks of one sound that may still grow. */
export class Peaks {
  /** How long it is. Units: frames. */
  frames = 0;
  /** The furthest that it swings, from 0 to 1. */
  loudest = 0;

  #lows = new Float32Array(MOST_STRETCHES);
  #highs = new Float32Array(MOST_STRETCHES);
  #stretchFrames = FIRST_STRETCH_FRAMES;

  /** @param {Float32Array[]} channels What comes next, one array a channel, all as long; from -1 to 1. */
  append(channels) {
    const { length } = channels[0];
    for (let start = 0; start < length; ) {
      if (this.frames === MOST_STRETCHES * this.#stretchFrames) this.#halve();
      const index = Math.floor(this.frames / this.#stretchFrames);
      const end = Math.min(length, start + (index + 1) * this.#stretchFrames - this.frames);
      for (const samples of channels) this.#widen(index, samples.subarray(start, end));
      this.frames += end - start;
      start = end;
    }
  }

  /**
   * The lowest and the highest sample of one of `count` columns of equal length that the whole is cut into.
   *
   * @param {number} column From 0.
   * @param {number} count
   */
  column(column, count) {
    const stretches = this.frames / this.#stretchFrames;
    const first = Math.floor((column * stretches) / count);
    const end = Math.max(first + 1, Math.ceil(((column + 1) * stretches) / count));
    let [low, high] = [0, 0];
    for (let index = first; index < Math.min(end, MOST_STRETCHES); index += 1) {
      low = Math.min(low, this.#lows[index]);
      high = Math.max(high, this.#highs[index]);
    }
    return { low, high };
  }

  #widen(index, samples) {
    let low = this.#lows[index];
    let high = this.#highs[index];
    for (const sample of samples) {
      if (sample < low) low = sample;
      else if (sample > high) high = sample;
    }
    this.#lows[index] = low;
    this.#highs[index] = high;
    this.loudest = Math.max(this.loudest, high, -low);
  }

  #halve() {
    for (let index = 0; index < MOST_STRETCHES; index += 2) {
      this.#lows[index / 2] = Math.min(this.#lows[index], this.#lows[index + 1]);
      this.#highs[index / 2] = Math.max(this.#highs[index], this.#highs[index + 1]);
    }
    this.#lows.fill(0, MOST_STRETCHES / 2);
    this.#highs.fill(0, MOST_STRETCHES / 2);
    this.#stretchFrames *= 2;
  }
}
