/** What is to be done with a recording, and by which model. It does none of it. */

import { freshId, h } from "../../base/dom.js";
import { choice, field } from "../../parts/fields.js";
import { modelSelect } from "../../parts/models_of.js";

const TASKS = [
  ["transcribe", "Transcribe"],
  ["translate", "Translate to English"],
  ["align", "Align a text"],
  ["speakers", "Tell who speaks"],
];
const ANSWERS = [
  ["timed", "With times"],
  ["streamed", "As it is heard"],
];

/** Its `change` events are those of its controls. */
export class Options extends HTMLElement {
  #task = choice(TASKS);
  #asr;
  #aligner;
  #diar;
  #diarizer;
  #languages = h("datalist", { id: freshId("languages") });
  #language = h("input", { type: "text", autocomplete: "off", spellcheck: false, placeholder: "detected" });
  #prompt = h("input", { type: "text", autocomplete: "off" });
  #answer = choice(ANSWERS);
  #text = h("textarea", { rows: 4 });
  #fields = [];

  constructor(feed) {
    super();
    this.#asr = modelSelect(feed, ["asr"]);
    this.#aligner = modelSelect(feed, ["align"]);
    this.#diar = modelSelect(feed, ["diar"]);
    this.#diarizer = modelSelect(feed, ["diar"], "Not asked");
    this.#language.setAttribute("list", this.#languages.id);
    this.#asr.addEventListener("change", () => this.#offerLanguages(feed));
    this.#task.addEventListener("change", () => this.#update());
    this.#build();
    this.#offerLanguages(feed);
    this.#update();
  }

  /** What this asks for: one of the tasks of an order. */
  get task() {
    return this.#task.value;
  }

  /** The task in its own words. */
  get label() {
    return this.#task.selectedOptions[0].label;
  }

  /** @returns {import("./requests.js").Order} For this file. */
  orderFor(file) {
    const listens = this.task === "transcribe" || this.task === "translate";
    return {
      task: this.task,
      file,
      model: { align: this.#aligner, speakers: this.#diar }[this.task]?.value ?? this.#asr.value,
      language: this.task === "speakers" ? "" : this.#language.value.trim(),
      prompt: listens ? this.#prompt.value : "",
      text: this.#text.value,
      diarizer: listens ? this.#diarizer.value : "",
      isStreamed: listens && this.#answer.value === "streamed",
    };
  }

  /** What captions are asked with: an order for a recording that is yet to be made. */
  captionOrder() {
    const order = {
      file: null,
      model: this.#asr.value,
      language: this.#language.value.trim(),
      prompt: this.#prompt.value,
    };
    return { ...order, task: "transcribe", text: "", diarizer: "", isStreamed: false };
  }

  #build() {
    const listens = ["transcribe", "translate"];
    const entries = [
      [listens, field("Model", this.#asr)],
      [["align"], field("Model", this.#aligner)],
      [["speakers"], field("Model", this.#diar)],
      [[...listens, "align"], field("Language", this.#language, "A code such as “de”, or a name.")],
      [listens, field("Who speaks", this.#diarizer)],
      [listens, field("Answer", this.#answer, "As it is heard, it has no times.")],
      [listens, field("Prompt", this.#prompt, "Names and spellings that occur.")],
    ];
    const text = field("Text", this.#text, "What is said in the recording, word for word.");
    this.#fields = [...entries, [["align"], text]];
    const shown = entries.map(([, element]) => element);
    this.append(h("div", { class: "fields" }, field("Task", this.#task), ...shown), text, this.#languages);
  }

  #update() {
    for (const [tasks, element] of this.#fields) element.hidden = !tasks.includes(this.task);
  }

  #offerLanguages(feed) {
    const model = feed.models.find(({ id }) => id === this.#asr.value);
    this.#languages.replaceChildren(...(model?.languages ?? []).map((value) => h("option", { value })));
  }
}

customElements.define("antiphon-listen-options", Options);
