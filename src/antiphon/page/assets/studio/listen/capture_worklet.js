/** Hands over what the microphone hears, in blocks of 16-bit samples. It runs in the browser's audio thread, alone. */

const BLOCK_FRAMES = 4096; // 85 ms at 48 kHz

class Capture extends globalThis.AudioWorkletProcessor {
  #samples = new Int16Array(BLOCK_FRAMES);
  #length = 0;
  #isOpen = true;

  constructor() {
    super();
    this.port.onmessage = () => {
      this.#isOpen = false;
      this.#handOver();
      this.port.postMessage(null); // nothing comes after this
    };
  }

  process([[channel]]) {
    if (channel && this.#isOpen) for (const value of channel) this.#take(value);
    return this.#isOpen;
  }

  #take(value) {
    this.#samples[this.#length] = Math.round(32767 * Math.max(-1, Math.min(1, value)));
    this.#length += 1;
    if (this.#length === BLOCK_FRAMES) this.#handOver();
  }

  #handOver() {
    const block = this.#samples.slice(0, this.#length);
    this.#length = 0;
    this.port.postMessage(block, [block.buffer]);
  }
}

globalThis.registerProcessor("antiphon-capture", Capture);
