/** What time it is at the server, as far as its entries tell. It knows nothing else of them. */

export class ServerClock {
  #aheadS = 0;
  #heardS = 0;

  /**
   * Take the time of an entry, in seconds since 1970.
   *
   * @param {boolean} isNew Whether it happened just now. From those the page learns how far the server's clock is from its own.
   */
  hear(time, isNew) {
    if (isNew) this.#aheadS = time - Date.now() / 1000;
    this.#heardS = time;
  }

  /** Seconds since 1970, never before the last entry. */
  now() {
    return Math.max(this.#heardS, Date.now() / 1000 + this.#aheadS);
  }
}
