/** The button that records, and the captions meanwhile. It knows what happens to neither afterwards. */

import { isAbort } from "../../base/api.js";
import { h } from "../../base/dom.js";
import { place } from "../../base/format.js";
import { Notice } from "../../parts/fields.js";
import { Recording } from "../recording.js";
import { floatsOf } from "../samples.js";
import { Waveform } from "../waveform.js";
import { LiveCaptions } from "./captions.js";
import { openMicrophone } from "./microphone.js";
import { liveRequest } from "./requests.js";

/** As much as is recorded: an hour and a half at 48 kHz, and a file that a server takes by default. */
const MAX_RECORDING_BYTES = 500 * 2 ** 20;

const LABELS = { idle: "Record", opening: "Opening the microphone…", recording: "Stop", finishing: "Do not wait" };

/**
 * Tells of a recording with a `recorded` event, whose `detail` is the File, and of its captions with a `captioned` event:
 * `{file, order, request, text}`.
 */
export class RecordPanel extends HTMLElement {
  #orderOf;
  #state = "idle";
  #take = null;
  #button = h("button", { type: "button", onclick: () => this.#pressed() }, LABELS.idle);
  #wantsCaptions = h("input", { type: "checkbox", checked: true });
  #time = h("span", { class: "mono" });
  #waveform = new Waveform("Recording until now");
  #status = h("span", { class: "unseen", role: "status" });
  #captions = h("p", {
    class: "listen-captions",
    role: "log",
    "aria-label": "Live captions",
    tabIndex: 0,
    hidden: true,
  });
  #notice = new Notice();

  /** @param {() => {model: string, language: string, prompt: string}} orderOf What captions are asked with. */
  constructor(orderOf) {
    super();
    this.#orderOf = orderOf;
    const captions = h("label", { class: "check" }, this.#wantsCaptions, "Live captions");
    const row = h("div", { class: "listen-row" }, this.#button, captions, this.#time, this.#status);
    this.#waveform.hidden = true;
    this.#waveform.isSeekable = false;
    this.append(row, this.#waveform, this.#captions, this.#notice);
  }

  #pressed() {
    if (this.#state === "idle") this.#open();
    else if (this.#state === "recording") this.#stop();
    else if (this.#state === "finishing") this.#take.captions.leave();
  }

  async #open() {
    this.#become("opening");
    this.#notice.show(null);
    try {
      const microphone = await openMicrophone();
      this.#record(microphone);
    } catch (error) {
      this.#notice.show(error);
      this.#become("idle");
    }
  }

  #record(microphone) {
    const take = { microphone, recording: new Recording({ rate: microphone.sampleRate, channels: 1 }), captions: null };
    this.#take = take;
    this.#captions.hidden = true;
    this.#captions.textContent = "";
    this.#waveform.begin(microphone.sampleRate);
    this.#become("recording");
    if (this.#wantsCaptions.checked) this.#caption(take);
    microphone.addEventListener("lost", () => this.#end("The microphone is gone, so the recording has ended."));
    microphone.listen((samples) => this.#hear(take, samples));
  }

  /** The captions may end before the recording does: then the reader is told why, and goes on speaking. */
  #caption(take) {
    const order = this.#orderOf();
    const request = liveRequest(order, take.recording.rate);
    try {
      take.captions = new LiveCaptions(request);
    } catch (error) {
      this.#notice.show(error);
      return;
    }
    this.#captions.hidden = false;
    take.captions.addEventListener("delta", ({ detail }) => this.#add(detail));
    take.captioned = take.captions.done.then(
      (text) => ({ order, request, text }),
      (error) => {
        if (!isAbort(error)) this.#notice.show(error);
        return null;
      },
    );
  }

  #add(text) {
    this.#captions.append(h("span", {}, text));
    this.#captions.scrollTop = this.#captions.scrollHeight;
  }

  #hear(take, samples) {
    const piece = new Uint8Array(samples.buffer);
    take.recording.append(piece);
    take.captions?.send(samples);
    this.#time.textContent = place(take.recording.duration);
    this.#waveform.extend(floatsOf(piece, 1));
    if (take.recording.byteLength > MAX_RECORDING_BYTES)
      this.#end("The recording is as long as this page can keep, so it has ended.");
  }

  async #end(reason) {
    if (this.#state !== "recording") return;
    this.#notice.show(new Error(reason));
    await this.#stop();
  }

  async #stop() {
    const { microphone, recording, captions, captioned } = this.#take;
    this.#become(captions ? "finishing" : "idle");
    await microphone.close();
    captions?.end();
    recording.finish();
    const file = new File([recording.wav()], `recording-${stamp(new Date())}.wav`, { type: "audio/wav" });
    this.dispatchEvent(new CustomEvent("recorded", { detail: file }));
    const said = await captioned;
    this.#become("idle");
    if (said) this.dispatchEvent(new CustomEvent("captioned", { detail: { file, ...said } }));
  }

  #become(state) {
    this.#state = state;
    this.#button.textContent = LABELS[state];
    this.#button.classList.toggle("danger", state === "recording");
    this.#waveform.hidden = state !== "recording";
    this.#wantsCaptions.disabled = state !== "idle";
    this.#status.textContent = STATES[state];
  }
}

customElements.define("antiphon-record", RecordPanel);

const STATES = {
  idle: "",
  opening: "Opening the microphone",
  recording: "Recording",
  finishing: "The recording has ended; the last words are yet to come",
};

/** A moment as file names have it: "20260131-093005". */
function stamp(date) {
  const local = new Date(date.getTime() - 60_000 * date.getTimezoneOffset());
  return local.toISOString().slice(0, 19).replaceAll(/[-:]/g, "").replace("T", "-");
}
