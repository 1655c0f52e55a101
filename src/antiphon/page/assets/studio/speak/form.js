/** What is to be spoken, and how: the form, and the body of the request that it stands for. It sends nothing. */

import { h } from "../../base/dom.js";
import { choice, field, Notice, setChoices } from "../../parts/fields.js";
import { modelSelect } from "../../parts/models_of.js";
import { Snippets } from "../snippets.js";
import { VoiceSelect } from "./voices.js";

export const FORMATS = ["wav", "mp3", "opus", "flac", "aac", "pcm"];
const SPEEDS = { least: 0.25, most: 4 };
const LANGUAGE_NAMES = new Intl.DisplayNames(["en"], { type: "language" });

/** Events: `speak` and `stop`, as the reader asks for them. */
export class SpeakForm extends HTMLElement {
  notice = new Notice();
  #feed;
  #text = h("textarea", { rows: 6, dir: "auto", spellcheck: true });
  #count = h("small", { class: "speak-count" });
  #model;
  #voice = new VoiceSelect();
  #language = h("select");
  #speed = h("input", { type: "number", min: SPEEDS.least, max: SPEEDS.most, step: "any", placeholder: "1" });
  #slider = h("input", { type: "range", min: SPEEDS.least, max: SPEEDS.most, step: 0.05, value: 1 });
  #seed = h("input", { type: "number", min: 0, max: Number.MAX_SAFE_INTEGER, step: 1, placeholder: "0" });
  #format = choice(FORMATS.map((format) => [format]));
  #options = h("input", { type: "text", spellcheck: false, autocomplete: "off", placeholder: '{"noise_scale": 0}' });
  #stop = h("button", { type: "button", onclick: () => this.dispatchEvent(new Event("stop")) }, "Stop");
  #said = h("span", { role: "status" });
  #snippets = new Snippets();
  #none = h("p", { class: "empty" }, "No model here can speak. ", h("a", { href: "#/models" }, "Models"), " has them.");

  constructor(feed) {
    super();
    this.#feed = feed;
    this.#model = modelSelect(feed, ["tts"]);
    this.#build();
    this.#model.addEventListener("change", () => this.#follow());
    this.#feed.addEventListener("models", () => this.#follow());
    this.addEventListener("input", () => this.#update());
    this.addEventListener("keydown", (event) => this.#key(event));
    this.isSpeaking = false;
    this.#follow();
  }

  /** The body of `POST /v1/audio/speech`. What the form leaves open is undefined. */
  body() {
    return {
      model: this.#model.value,
      input: this.#text.value,
      voice: said(this.#voice),
      language: said(this.#language),
      speed: number(this.#speed),
      seed: number(this.#seed),
      response_format: this.#format.value,
      options: parsed(this.#options.value),
    };
  }

  /** Fill the form in again with what `body` gave. */
  use(body) {
    if (this.#feed.models.some(({ id }) => id === body.model)) this.#model.value = body.model;
    this.#text.value = body.input;
    this.#voice.value = body.voice ?? "";
    this.#speed.value = body.speed ?? "";
    this.#seed.value = body.seed ?? "";
    this.#format.value = body.response_format;
    this.#options.value = body.options ? JSON.stringify(body.options) : "";
    this.#follow();
    this.#language.value = body.language ?? "";
    this.#update();
    this.#text.focus();
  }

  /** Whether there is something to stop. The button keeps the focus when there no longer is. */
  set isSpeaking(isSpeaking) {
    this.#stop.setAttribute("aria-disabled", String(!isSpeaking));
  }

  /** Say how it goes. */
  say(text) {
    this.#said.textContent = text;
  }

  #build() {
    this.#text.id = "speak-text";
    this.#slider.setAttribute("aria-label", "Speed, as a slider");
    this.#slider.addEventListener("input", () => {
      this.#speed.value = this.#slider.value;
    });
    const form = h(
      "form",
      { class: "card", onsubmit: (event) => this.#submit(event) },
      h("div", { class: "field" }, h("label", { for: "speak-text" }, "Text"), this.#text, this.#count),
      this.#none,
      h("div", { class: "fields" }, ...this.#fields()),
      this.#more(),
      h(
        "div",
        { class: "buttons" },
        h("button", { type: "submit", class: "primary", "aria-keyshortcuts": "Control+Enter" }, "Speak"),
        this.#stop,
        this.#said,
      ),
      this.notice,
      this.#snippets,
    );
    this.append(form);
  }

  #fields() {
    const speed = field("Speed", this.#speed);
    speed.append(h("div", { class: "speak-speed" }, this.#slider, this.#speed));
    return [
      field("Model", this.#model),
      field("Voice", this.#voice.element),
      field("Language", this.#language),
      speed,
      field("Seed", this.#seed),
      field("File format", this.#format, "A compressed one is spoken anew when it is saved."),
    ];
  }

  #more() {
    const hint = "A JSON object. The engine's page in the documentation has its options.";
    return h(
      "details",
      { class: "speak-more" },
      h("summary", {}, "More"),
      field("Options of the engine", this.#options, hint),
    );
  }

  async #submit(event) {
    event.preventDefault();
    await this.#voice.listed(); // otherwise the request could name a voice of the model that was selected before
    this.dispatchEvent(new Event("speak"));
  }

  #key(event) {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    this.querySelector("form").requestSubmit();
  }

  /** Offer what the chosen model has. */
  #follow() {
    const model = this.#feed.models.find(({ id }) => id === this.#model.value);
    const languages = model?.languages ?? [];
    setChoices(this.#language, [["", "Not said"], ...languages.map((code) => [code, languageName(code)])]);
    this.#language.parentElement.hidden = languages.length < 2;
    this.#none.hidden = model !== undefined || this.#feed.status === null;
    if (model) this.#voice.offer(model.id);
    this.#update();
  }

  #update() {
    const { length } = [...this.#text.value]; // as the server counts: characters, not halves of them
    this.#count.textContent = `${length.toLocaleString("en")} character${length === 1 ? "" : "s"} · Ctrl+Enter speaks`;
    if (document.activeElement !== this.#slider) this.#slider.value = this.#speed.value || 1;
    const isWrong = this.#options.value.trim() !== "" && parsed(this.#options.value) === undefined;
    this.#options.setCustomValidity(isWrong ? "This is no JSON object." : "");
    this.#snippets.show(shownRequest(this.body()));
  }
}

customElements.define("antiphon-speak-form", SpeakForm);

/** @returns {import("../snippets.js").ShownRequest} The request that answers with the file. */
export function shownRequest(body) {
  return { path: "v1/audio/speech", json: body, saveAs: `speech.${body.response_format}` };
}

function said(control) {
  return control.value === "" ? undefined : control.value;
}

function number(input) {
  return input.value === "" ? undefined : Number(input.value);
}

/** The JSON object of a text, or undefined if it is none. */
function parsed(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function languageName(code) {
  try {
    return `${LANGUAGE_NAMES.of(code.replaceAll("_", "-"))} (${code})`;
  } catch {
    return code; // a name of the model's own
  }
}
