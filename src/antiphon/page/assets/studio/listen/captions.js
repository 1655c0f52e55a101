/** Captions of what is being said: a live session with the server. It knows no microphone, and shows nothing. */

import { ApiError, call, errorOf, openSocket } from "../../base/api.js";

/** As much audio as may wait to be sent: a minute and a half at 48 kHz. A model that loads takes none yet. */
export const MAX_WAITING_BYTES = 8 * 2 ** 20;

/** Tells of each piece of text with a `delta` event, whose `detail` is the text. */
export class LiveCaptions extends EventTarget {
  #request;
  #socket;
  #state = "opening"; // then "open", then "over"
  #unsent = [];
  #unsentBytes = 0;
  #resolve;
  #reject;

  /** @param {import("./requests.js").ShownRequest} request A live one. */
  constructor(request) {
    super();
    /** Resolves with the whole text; rejects with an ApiError that says why the captions ended. */
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.done.catch(() => {}); // who waits for it is told, too
    this.#request = request;
    this.#socket = openSocket(request.path, request.query);
    this.#socket.onopen = () => this.#opened();
    this.#socket.onmessage = ({ data }) => this.#take(JSON.parse(data));
    this.#socket.onclose = () => this.#closed();
  }

  /** Have these samples heard. More than the bound ends the captions. */
  send(samples) {
    if (this.#state === "over") return;
    if (this.#socket.bufferedAmount + this.#unsentBytes > MAX_WAITING_BYTES) {
      this.#end(new ApiError("The server does not take audio as fast as it is spoken, so the captions have ended."));
    } else {
      this.#say(samples);
    }
  }

  /** Nothing more is said: `done` follows. */
  end() {
    if (this.#state !== "over") this.#say('{"type": "end"}');
  }

  /** Do not wait for `done`, which rejects with an `AbortError`: the slot is free. */
  leave() {
    if (this.#state !== "over") this.#end(new DOMException("The captions were left.", "AbortError"));
  }

  #say(message) {
    if (this.#state === "open") {
      this.#socket.send(message);
    } else {
      this.#unsent.push(message);
      this.#unsentBytes += message.byteLength ?? 0;
    }
  }

  #opened() {
    if (this.#state === "over") {
      this.#socket.close(); // not before: a browser complains of a socket that is closed while it opens
      return;
    }
    this.#state = "open";
    for (const message of this.#unsent.splice(0)) this.#socket.send(message);
    this.#unsentBytes = 0;
  }

  #take(event) {
    if (event.type === "transcript.text.delta") {
      this.dispatchEvent(new CustomEvent("delta", { detail: event.delta }));
    } else if (event.type === "transcript.text.done") {
      this.#state = "over";
      this.#resolve(event.text);
    } else if (event.type === "error") {
      this.#end(errorOf(event.error));
    }
  }

  #end(error) {
    this.#state = "over";
    this.#unsent = [];
    this.#reject(error);
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.close();
  }

  async #closed() {
    if (this.#state === "over") return;
    const wasOpen = this.#state === "open";
    this.#state = "over";
    this.#reject(wasOpen ? new ApiError("The connection ended before the captions did.") : await this.#refusal());
  }

  /** A browser does not tell why a handshake was refused. The same query over HTTP, with no audio, is told. */
  async #refusal() {
    try {
      const { path, query } = this.#request;
      const answer = await call(path, { method: "POST", query });
      await answer.body.cancel();
      return new ApiError("The live connection could not be opened.");
    } catch (error) {
      return error;
    }
  }
}
