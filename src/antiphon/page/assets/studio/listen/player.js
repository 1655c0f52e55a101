/** A recording that is played: its picture, its controls, and where it is. It knows nothing of what is said in it. */

import { h } from "../../base/dom.js";
import { saveFile } from "../../parts/saving.js";
import { Waveform } from "../waveform.js";

/** A file that is longer has no picture: all of it would be decoded in memory. */
const MAX_DRAWN_BYTES = 64 * 2 ** 20;
/** What it is decoded to for its picture: speech is as high in it, and an hour takes 43 MB. Units: frames a second. */
const DRAWN_RATE = 3000;

/** Tells where it is with a `place` event, whose `detail` is `{seconds, isPlaying}`, and of its length with `duration`. */
export class Player extends HTMLElement {
  #audio = h("audio", { controls: true, preload: "metadata", "aria-label": "Recording" });
  #waveform = new Waveform("Place in the recording");
  #trouble = h(
    "p",
    { class: "empty", hidden: true },
    "This browser cannot play this file. The server can read it all the same.",
  );
  #file = null;
  #url = "";

  constructor() {
    super();
    const save = h("button", { type: "button", class: "quiet", onclick: () => this.#save() }, "Download the recording");
    this.append(this.#waveform, h("div", { class: "listen-row" }, this.#audio, save), this.#trouble);
    this.#waveform.addEventListener("seek", ({ detail }) => this.seek(detail));
    this.#audio.addEventListener("play", () => this.#run());
    for (const moment of ["seeking", "timeupdate", "ended"]) this.#audio.addEventListener(moment, () => this.#tell());
    this.#audio.addEventListener("durationchange", () => this.dispatchEvent(new Event("duration")));
    this.#audio.addEventListener("error", () => this.#cannotPlay());
  }

  disconnectedCallback() {
    this.#audio.pause();
    this.#audio.removeAttribute("src");
    URL.revokeObjectURL(this.#url);
  }

  /** @param {File} file */
  open(file) {
    this.#file = file;
    this.#url = URL.createObjectURL(file);
    this.#audio.src = this.#url;
    this.#draw(file);
  }

  /** In seconds; 0 where it is not known. */
  get duration() {
    return Number.isFinite(this.#audio.duration) ? this.#audio.duration : this.#waveform.duration;
  }

  /** Go on, or stay, from this place, in seconds. */
  seek(seconds) {
    this.#audio.currentTime = seconds;
  }

  async #draw(file) {
    if (file.size > MAX_DRAWN_BYTES) {
      this.#waveform.hidden = true;
      return;
    }
    try {
      const context = new OfflineAudioContext(1, 1, DRAWN_RATE);
      this.#waveform.show(await context.decodeAudioData(await file.arrayBuffer()));
      this.dispatchEvent(new Event("duration"));
    } catch {
      this.#waveform.hidden = true; // a kind of file that only the server reads
    }
  }

  #run() {
    this.#tell();
    if (!this.#audio.paused && this.isConnected) requestAnimationFrame(() => this.#run());
  }

  #tell() {
    const seconds = this.#audio.currentTime;
    this.#waveform.position = seconds;
    this.dispatchEvent(new CustomEvent("place", { detail: { seconds, isPlaying: !this.#audio.paused } }));
  }

  #cannotPlay() {
    if (!this.isConnected) return;
    this.#audio.hidden = true;
    this.#trouble.hidden = false;
  }

  #save() {
    saveFile(this.#file.name, this.#file);
  }
}

customElements.define("antiphon-player", Player);
