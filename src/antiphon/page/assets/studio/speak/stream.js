/**
 * Speech from the server while it is made: samples, and how long they took. It plays nothing and keeps nothing.
 *
 * What is asked for is a wav, whatever format the reader wants for a file: of all formats it alone says its rate, can be cut
 * anywhere, and needs no decoder, so it plays from the first sentence on in every browser. What is heard is what any other
 * format is made from, because equal requests with equal seeds get equal speech.
 */

import { ApiError, call, isAbort } from "../../base/api.js";
import { SAMPLE_BYTES } from "../samples.js";

const HEADER_BYTES = 44;

/**
 * Begin to have a text spoken.
 *
 * @param {Record<string, unknown>} body That of `POST /v1/audio/speech`; its format is not heeded.
 * @param {AbortSignal} signal Ends it, and the engine's work.
 * @returns {Promise<{rate: number, channels: number, queueMs: number, loadMs: number, pieces: AsyncGenerator<Uint8Array>}>}
 *   `rate` in Hz; `pieces` are interleaved 16-bit little-endian samples, whole frames each. The generator throws an ApiError
 *   where the answer breaks off, and an `AbortError` after `signal`.
 * @throws {ApiError} As the server refuses it.
 */
export async function openSpeech(body, signal) {
  const json = { ...body, response_format: "wav", stream_format: "audio" };
  const response = await call("v1/audio/speech", { json, signal });
  const bytes = bytesOf(response);
  const [header, rest] = await readHeader(bytes);
  const view = new DataView(header.buffer);
  const [channels, rate] = [view.getUint16(22, true), view.getUint32(24, true)];
  const timing = serverTiming(response.headers.get("server-timing") ?? "");
  const pieces = wholeFrames(rest, bytes, channels * SAMPLE_BYTES);
  return { rate, channels, queueMs: timing.queue, loadMs: timing.load, pieces };
}

async function* bytesOf(response) {
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch (error) {
    if (isAbort(error)) throw error;
    const requestId = response.headers.get("x-request-id");
    throw new ApiError("The answer broke off before its end.", { requestId });
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function readHeader(bytes) {
  let read = new Uint8Array(0);
  while (read.length < HEADER_BYTES) {
    const { done, value } = await bytes.next();
    if (done) throw new ApiError("The server answered with less than a sound.");
    read = joined(read, value);
  }
  return [read.slice(0, HEADER_BYTES), read.subarray(HEADER_BYTES)];
}

async function* wholeFrames(first, bytes, frameBytes) {
  let rest = first;
  try {
    for (;;) {
      const whole = rest.length - (rest.length % frameBytes);
      if (whole > 0) yield rest.subarray(0, whole);
      const { done, value } = await bytes.next();
      if (done) return;
      rest = joined(rest.subarray(whole), value);
    }
  } finally {
    await bytes.return(); // also where nobody wants the rest
  }
}

function joined(first, second) {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

/** `queue;dur=1.5, load;dur=0` as an object of milliseconds. */
function serverTiming(header) {
  return Object.fromEntries(Array.from(header.matchAll(/(\w+);dur=([\d.]+)/g), ([, name, ms]) => [name, Number(ms)]));
}
