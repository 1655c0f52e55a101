/** What the microphone has heard, kept up to a bound, and made a file of. It knows no microphone. */

/** As much as is kept: 29 minutes at 48 kHz, for all of it is in memory. */
export const MAX_RECORDING_BYTES = 160 * 2 ** 20;

const HEADER_BYTES = 44;
const SAMPLE_BYTES = 2;

export class Recording {
  #blocks = [];
  #bytes = 0;

  /** @param {number} sampleRate Frames a second, of one channel. */
  constructor(sampleRate) {
    this.sampleRate = sampleRate;
  }

  /** How long it is. */
  get seconds() {
    return this.#bytes / SAMPLE_BYTES / this.sampleRate;
  }

  /** Whether no more is kept. */
  get isFull() {
    return this.#bytes >= MAX_RECORDING_BYTES;
  }

  /** @param {Int16Array} samples */
  add(samples) {
    if (this.isFull) return;
    this.#blocks.push(samples);
    this.#bytes += samples.byteLength;
  }

  /** @returns {File} A WAV file of 16 bits. */
  file(name) {
    return new File([this.#header(), ...this.#blocks], name, { type: "audio/wav" });
  }

  /** Of RIFF, as Microsoft's "Multimedia Programming Interface and Data Specifications 1.0" has it. */
  #header() {
    const view = new DataView(new ArrayBuffer(HEADER_BYTES));
    const tag = (at, text) => new Uint8Array(view.buffer, at).set(new TextEncoder().encode(text));
    tag(0, "RIFF");
    view.setUint32(4, HEADER_BYTES - 8 + this.#bytes, true);
    tag(8, "WAVEfmt ");
    view.setUint32(16, 16, true); // the bytes of what follows, up to "data"
    view.setUint16(20, 1, true); // PCM
    view.setUint16(22, 1, true); // one channel
    view.setUint32(24, this.sampleRate, true);
    view.setUint32(28, this.sampleRate * SAMPLE_BYTES, true);
    view.setUint16(32, SAMPLE_BYTES, true);
    view.setUint16(34, 8 * SAMPLE_BYTES, true);
    tag(36, "data");
    view.setUint32(40, this.#bytes, true);
    return view.buffer;
  }
}
