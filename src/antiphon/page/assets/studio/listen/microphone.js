/** The microphone, as blocks of samples. It knows no server, and keeps nothing. */

const WORKLET = new URL("./capture_worklet.js", import.meta.url);

const REASONS = {
  NotAllowedError: "The microphone may not be used: this browser, or its reader, does not allow it for this page.",
  NotFoundError: "There is no microphone.",
  NotReadableError: "The microphone cannot be opened. Another program may be using it.",
};

/** One channel. Made by `openMicrophone`. */
export class Microphone extends EventTarget {
  #context;
  #stream;
  #node;

  constructor(context, stream, node) {
    super();
    this.#context = context;
    this.#stream = stream;
    this.#node = node;
    /** Frames a second. */
    this.sampleRate = context.sampleRate;
    // It was unplugged, or the reader took the permission back.
    stream.getAudioTracks()[0].addEventListener("ended", () => this.dispatchEvent(new Event("lost")));
  }

  /** Give each block, an Int16Array, to `take` from now on. */
  listen(take) {
    this.#context.resume(); // a browser may have suspended it while the reader was asked
    this.#node.port.onmessage = ({ data }) => data && take(data);
    this.#context.createMediaStreamSource(this.#stream).connect(this.#node);
  }

  /** Resolves when the last block has been given. */
  async close() {
    const take = this.#node.port.onmessage;
    await new Promise((resolve) => {
      this.#node.port.onmessage = (event) => (event.data ? take?.(event) : resolve());
      this.#node.port.postMessage("close");
    });
    for (const track of this.#stream.getTracks()) track.stop();
    await this.#context.close();
  }
}

/**
 * Ask the reader for the microphone, and open it.
 *
 * @returns {Promise<Microphone>}
 * @throws {Error} Why there is none, for the reader.
 */
export async function openMicrophone() {
  if (!navigator.mediaDevices) {
    throw new Error("A browser lets a page use the microphone only over HTTPS, or on the server's own machine.");
  }
  const context = new AudioContext(); // at the rate of the device: not every browser converts here
  try {
    await context.audioWorklet.addModule(WORKLET); // before the microphone is open, so that no word is lost
    const node = captureNode(context);
    return new Microphone(context, await grantedStream(), node);
  } catch (error) {
    await context.close();
    throw error;
  }
}

async function grantedStream() {
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
  } catch (error) {
    throw new Error(REASONS[error.name] ?? `The microphone cannot be opened. ${error.message}`, { cause: error });
  }
}

function captureNode(context) {
  return new AudioWorkletNode(context, "antiphon-capture", {
    numberOfOutputs: 0,
    channelCount: 1,
    channelCountMode: "explicit",
  });
}
