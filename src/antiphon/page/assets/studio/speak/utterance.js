/** One text that is being spoken, or was: its request, its recording, its times. It shows nothing. */

import { ApiError, isAbort } from "../../base/api.js";
import { Recording } from "../recording.js";
import { openSpeech } from "./stream.js";

/** It tells of its first sound with a `begin` event, and of its end with an `end` event if it had begun. */
export class Utterance extends EventTarget {
  /** `waiting`, `speaking`, then `whole`, `stopped` by the reader, or `cut`, with `error`. */
  state = "waiting";
  error = null;
  /** @type {Recording | null} What came so far; null while it waits. */
  recording = null;
  /** From the call to the first samples, and to the last. Units: milliseconds; null until then. */
  firstMs = null;
  totalMs = null;
  /** What the server says it waited: for the slot, and for the model to be loaded. Milliseconds. */
  queueMs = null;
  loadMs = null;
  #calling = new AbortController();

  /** @param {Record<string, unknown>} body That of `POST /v1/audio/speech`. */
  constructor(body) {
    super();
    this.body = body;
  }

  /**
   * Have it spoken, to its end.
   *
   * @throws {ApiError} If there is no sound at all. What goes wrong later is its `error`.
   */
  async run() {
    const began = performance.now();
    try {
      const speech = await openSpeech(this.body, this.#calling.signal);
      for await (const piece of speech.pieces) {
        if (!this.recording) this.#begin(speech, performance.now() - began);
        this.recording.append(piece);
      }
      if (!this.recording) throw new ApiError("The answer has no sound in it.");
      this.#end("whole", null);
    } catch (error) {
      if (isAbort(error)) this.#end("stopped", null);
      else if (this.recording) this.#end("cut", error);
      else throw error;
    } finally {
      this.totalMs = performance.now() - began;
      if (this.recording) this.dispatchEvent(new Event("end"));
    }
  }

  /** End it, and the engine's work for it. What came so far stays. */
  stop() {
    this.#calling.abort();
  }

  #begin({ rate, channels, queueMs, loadMs }, firstMs) {
    this.recording = new Recording({ rate, channels });
    Object.assign(this, { queueMs, loadMs, firstMs, state: "speaking" });
    this.dispatchEvent(new Event("begin"));
  }

  #end(state, error) {
    this.state = state;
    this.error = error;
    this.recording?.finish();
  }
}
