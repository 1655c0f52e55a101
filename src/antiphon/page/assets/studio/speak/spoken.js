/** One result: what was spoken, how, its sound, and what can be done with it. The list that it stands in is not its own. */

import { call, isAbort } from "../../base/api.js";
import { h, svg } from "../../base/dom.js";
import { bytes, duration, place } from "../../base/format.js";
import { Notice } from "../../parts/fields.js";
import { saveFile } from "../../parts/saving.js";
import { floatsOf } from "../samples.js";
import { Snippets } from "../snippets.js";
import { Waveform } from "../waveform.js";
import { shownRequest } from "./form.js";
import { Player } from "./player.js";

/** How much of a text is shown; the form has all of it again. Units: characters. */
const SHOWN_CHARACTERS = 300;
const STATES = { speaking: "Speaking…", whole: "", stopped: "Stopped before its end", cut: "Cut off" };
const SHAPES = { play: "M4 2.5v11l9.5-5.5z", pause: "M4 2.5h3v11H4zm5 0h3v11H9z" };

/** Events: `use`, to fill the form in again, and `remove`. Whoever removes it calls `discard`. */
export class Spoken extends HTMLElement {
  #utterance;
  #number;
  #player;
  #waveform;
  #play = h("button", { type: "button", class: "spoken-play", onclick: () => this.#toggle() });
  #time = h("span", { class: "mono spoken-time", "aria-hidden": "true" });
  #facts = h("p", { class: "spoken-facts" });
  #download = h("button", { type: "button", class: "quiet", onclick: () => this.#save() });
  #notice = new Notice();
  #fetching = null;

  /**
   * @param {number} number Which one it is, from 1.
   * @param {import("./utterance.js").Utterance} utterance One that has begun.
   */
  constructor(number, utterance) {
    super();
    this.#number = number;
    this.#utterance = utterance;
    this.#player = new Player(utterance.recording);
    this.#waveform = new Waveform(`Speech ${number}`);
    this.#build();
    this.#listen();
    this.#update();
  }

  get byteLength() {
    return this.#utterance.recording.byteLength;
  }

  get body() {
    return this.#utterance.body;
  }

  play() {
    this.#player.play();
  }

  /** Fall silent. */
  pause() {
    this.#player.pause();
  }

  /** End all that it does, and give back what it holds. */
  discard() {
    this.#utterance.stop();
    this.#player.pause();
    this.#fetching?.abort();
  }

  #build() {
    const { input } = this.body;
    const text = input.length > SHOWN_CHARACTERS ? `${input.slice(0, SHOWN_CHARACTERS)}…` : input;
    const snippets = new Snippets();
    snippets.show(shownRequest(this.body));
    const tell = (name) => () => this.dispatchEvent(new Event(name));
    this.append(
      h(
        "article",
        { class: "card", "aria-label": `Speech ${this.#number}` },
        h("p", { class: "spoken-text", dir: "auto" }, text),
        h("p", { class: "spoken-how" }, ...tags(this.body)),
        h("div", { class: "spoken-sound" }, this.#play, this.#waveform, this.#time),
        this.#facts,
        this.#notice,
        h(
          "div",
          { class: "buttons" },
          this.#download,
          h("button", { type: "button", class: "quiet", onclick: tell("use") }, "Use again"),
          h("button", { type: "button", class: "quiet", onclick: tell("remove") }, "Remove"),
        ),
        snippets,
      ),
    );
  }

  #listen() {
    const { recording } = this.#utterance;
    this.#waveform.begin(recording.rate);
    recording.addEventListener("piece", ({ detail }) => {
      this.#waveform.extend(floatsOf(detail, recording.channels));
      this.#updateTime();
    });
    this.#waveform.addEventListener("seek", ({ detail }) => this.#player.seek(detail));
    this.#player.addEventListener("time", () => this.#updateTime());
    this.#player.addEventListener("change", () => this.#update());
    this.#utterance.addEventListener("end", () => {
      this.#update();
      this.#notice.show(this.#utterance.error);
    });
  }

  #update() {
    const { state } = this.#utterance;
    const verb = this.#player.isPlaying ? "Pause" : "Play";
    this.dataset.state = state;
    this.#play.replaceChildren(icon(SHAPES[verb.toLowerCase()]));
    this.#play.setAttribute("aria-label", `${verb} speech ${this.#number}`);
    this.#facts.textContent = told(this.#utterance);
    this.#download.hidden = state === "speaking";
    this.#download.textContent = this.#fetching ? "Making the file…" : `Download ${this.#format()}`;
    this.#updateTime();
  }

  #updateTime() {
    this.#waveform.position = this.#player.position;
    this.#time.textContent = progress(this.#player.position, this.#waveform.duration);
  }

  #toggle() {
    if (this.#player.isPlaying) this.#player.pause();
    else this.#player.play();
  }

  /** What the file is: of speech that is not whole there are only the samples that came. */
  #format() {
    const { response_format: format } = this.body;
    return this.#utterance.state === "whole" || format === "pcm" ? format : "wav";
  }

  async #save() {
    if (this.#fetching) return;
    this.#fetching = new AbortController();
    this.#update();
    this.#notice.show(this.#utterance.error);
    try {
      saveFile(`speech-${this.#number}.${this.#format()}`, await this.#file(this.#fetching.signal));
    } catch (error) {
      if (!isAbort(error)) this.#notice.show(error);
    } finally {
      this.#fetching = null;
      this.#update();
    }
  }

  /** A compressed file is spoken once more, and whole: its bytes are those that the code below the result gets. */
  async #file(signal) {
    const { recording } = this.#utterance;
    const format = this.#format();
    if (format === "wav") return recording.wav();
    if (format === "pcm") return recording.pcm();
    return (await call("v1/audio/speech", { json: this.body, signal })).blob();
  }
}

customElements.define("antiphon-spoken", Spoken);

/** What the request says besides its text. */
function tags({ model, voice, language, speed, seed, response_format, options }) {
  const facts = [
    model,
    voice,
    language,
    speed !== undefined && `speed ${speed}`,
    seed !== undefined && `seed ${seed}`,
    response_format,
    options && JSON.stringify(options),
  ];
  return facts.filter(Boolean).map((fact) => h("span", { class: "tag" }, fact));
}

function told({ state, firstMs, totalMs, queueMs, loadMs, recording }) {
  const waits = `First sound after ${duration(firstMs)} (queue ${duration(queueMs)}, load ${duration(loadMs)})`;
  const end = totalMs !== null && [`All after ${duration(totalMs)}`, bytes(recording.byteLength)];
  return [STATES[state], waits, end].flat().filter(Boolean).join(" · ");
}

/** Tenths of a second are of interest while there are few seconds. */
function progress(position, whole) {
  return whole < 60 ? `${position.toFixed(1)} / ${whole.toFixed(1)} s` : `${place(position)} / ${place(whole)}`;
}

function icon(shape) {
  return svg("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" }, svg("path", { d: shape }));
}
