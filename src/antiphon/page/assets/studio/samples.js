/** 16-bit samples, the only ones that the server speaks: what their bytes are. It knows where none of them comes from. */

/** Bytes of a sample. */
export const SAMPLE_BYTES = 2;

/**
 * @param {Uint8Array} piece Whole frames, interleaved, little-endian.
 * @param {number} channels
 * @returns {Float32Array[]} One array a channel, from -1 to 1.
 */
export function floatsOf(piece, channels) {
  const samples = new Int16Array(piece.slice().buffer); // every machine that has a browser is little-endian
  const arrays = Array.from({ length: channels }, () => new Float32Array(samples.length / channels));
  for (let at = 0; at < samples.length; at += 1)
    arrays[at % channels][Math.floor(at / channels)] = samples[at] / 32_768;
  return arrays;
}
