/** Samples that come in pieces, kept where the browser may put them on a disk. It knows where none of them comes from. */

import { floatsOf, SAMPLE_BYTES } from "./samples.js";

/** What is kept as an array; what is before it is a Blob, which a browser need not hold in memory. */
const BLOCK_BYTES = 1024 * 1024;

/** 16-bit samples that may still grow. It tells of each piece with a `piece` event, whose `detail` is the piece. */
export class Recording extends EventTarget {
  /** Whether nothing more comes. */
  isFinished = false;
  /** @type {Blob[]} */
  #blocks = [];
  #tail = new Uint8Array(BLOCK_BYTES);
  #tailBytes = 0;

  /** @param {{rate: number, channels: number}} format `rate` in Hz. */
  constructor({ rate, channels }) {
    super();
    this.rate = rate;
    this.channels = channels;
  }

  get byteLength() {
    return this.#blocks.length * BLOCK_BYTES + this.#tailBytes;
  }

  get frames() {
    return this.byteLength / (SAMPLE_BYTES * this.channels);
  }

  /** Units: seconds. */
  get duration() {
    return this.frames / this.rate;
  }

  /** @param {Uint8Array} piece Whole frames, interleaved. */
  append(piece) {
    for (let start = 0; start < piece.length; ) {
      const end = Math.min(piece.length, start + BLOCK_BYTES - this.#tailBytes);
      this.#tail.set(piece.subarray(start, end), this.#tailBytes);
      this.#tailBytes += end - start;
      start = end;
      if (this.#tailBytes === BLOCK_BYTES) this.#seal();
    }
    this.dispatchEvent(new CustomEvent("piece", { detail: piece }));
  }

  /** Nothing more comes. */
  finish() {
    this.#tail = this.#tail.slice(0, this.#tailBytes);
    this.isFinished = true;
  }

  /**
   * Samples from one place on.
   *
   * @param {number} first The first frame.
   * @param {number} count How many frames; all must be there.
   * @returns {Promise<Float32Array[]>} One array a channel.
   */
  async read(first, count) {
    const frameBytes = SAMPLE_BYTES * this.channels;
    const bytes = this.pcm().slice(first * frameBytes, (first + count) * frameBytes);
    return floatsOf(new Uint8Array(await bytes.arrayBuffer()), this.channels);
  }

  /** The samples alone: what the server answers as `pcm`. */
  pcm() {
    return new Blob([...this.#blocks, this.#tail.subarray(0, this.#tailBytes)], { type: "audio/pcm" });
  }

  /** A file with true sizes in its header: what the server answers as a `wav` that is not streamed. */
  wav() {
    return new Blob([wavHeader(this), this.pcm()], { type: "audio/wav" });
  }

  #seal() {
    this.#blocks.push(new Blob([this.#tail]));
    this.#tailBytes = 0;
  }
}

/** The 44 bytes of the RIFF WAVE form with a WAVEFORMAT chunk (Microsoft/IBM, 1991). */
function wavHeader({ rate, channels, byteLength }) {
  const header = new DataView(new ArrayBuffer(44));
  const name = (at, text) => new Uint8Array(header.buffer).set(new TextEncoder().encode(text), at);
  name(0, "RIFF");
  header.setUint32(4, byteLength + 36, true);
  name(8, "WAVEfmt ");
  header.setUint32(16, 16, true);
  header.setUint16(20, 1, true);
  header.setUint16(22, channels, true);
  header.setUint32(24, rate, true);
  header.setUint32(28, rate * channels * SAMPLE_BYTES, true);
  header.setUint16(32, channels * SAMPLE_BYTES, true);
  header.setUint16(34, 8 * SAMPLE_BYTES, true);
  name(36, "data");
  header.setUint32(40, byteLength, true);
  return header;
}
