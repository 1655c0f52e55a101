/** A transcript as text, subtitles or JSON: shown, copied and downloaded. It does not know how subtitles are written. */

import { isAbort } from "../../base/api.js";
import { h } from "../../base/dom.js";
import { copyButton, Notice } from "../../parts/fields.js";
import { saveFile, stemOf } from "../../parts/saving.js";
import { Snippets } from "../snippets.js";
import { paragraphsOf } from "./heard.js";
import { subtitles } from "./listening.js";
import { SUBTITLES, subtitleRequest } from "./requests.js";

const LABELS = { text: "Text", srt: "SRT", vtt: "VTT", json: "JSON" };
const ENDINGS = { text: "txt", srt: "srt", vtt: "vtt", json: "json" };

/** Shown, and then copied: a browser lets a page copy only at once after a click, and a server may take its time. */
export class Formats extends HTMLElement {
  #entry = null;
  #shown = null;
  #texts = {};
  #asked = null;
  #buttons = new Map();
  #status = h("p", { role: "status", class: "listen-status" });
  #notice = new Notice();
  #text = h("pre", { tabIndex: 0 });
  #code = new Snippets();
  #panel = h("div", { class: "listen-format", hidden: true });

  constructor() {
    super();
    const save = h("button", { type: "button", class: "quiet", onclick: () => this.#save() }, "Download");
    this.#panel.append(
      h(
        "div",
        { class: "listen-row" },
        copyButton("Copy", () => this.#texts[this.#shown]),
        save,
      ),
      this.#text,
      this.#code,
    );
  }

  /** @param {import("./result_view.js").Entry} entry */
  show(entry) {
    this.#entry = entry;
    const names = entry.order.task === "speakers" ? ["json"] : ["text", ...SUBTITLES[entry.order.task], "json"];
    this.#buttons = new Map(names.map((name) => [name, this.#button(name)]));
    const bar = h(
      "div",
      { class: "listen-row", role: "group", "aria-label": "The transcript as" },
      ...this.#buttons.values(),
    );
    this.replaceChildren(bar, this.#status, this.#notice, this.#panel);
  }

  disconnectedCallback() {
    this.#asked?.abort(); // and its slot is free
  }

  #button(name) {
    const open = () => this.#open(this.#shown === name ? null : name);
    return h("button", { type: "button", class: "quiet", "aria-pressed": "false", onclick: open }, LABELS[name]);
  }

  async #open(name) {
    this.#asked?.abort();
    this.#asked = null;
    this.#shown = name;
    this.#panel.hidden = true;
    this.#notice.show(null);
    for (const [other, button] of this.#buttons) button.setAttribute("aria-pressed", String(other === name));
    if (name !== null && (await this.#has(name)) && this.#shown === name) this.#unfold(name);
  }

  #unfold(name) {
    this.#text.textContent = this.#texts[name];
    this.#text.setAttribute("aria-label", `The transcript as ${LABELS[name]}`);
    this.#code.hidden = !SUBTITLES[this.#entry.order.task].includes(name);
    if (!this.#code.hidden) this.#code.show(subtitleRequest(this.#entry.order, name));
    this.#panel.hidden = false;
  }

  async #has(name) {
    const { order, result } = this.#entry;
    if (name === "text") this.#texts.text ??= textOf(result.heard);
    if (name === "json") this.#texts.json ??= JSON.stringify(result.answer, null, 2);
    if (name in this.#texts) return true;
    const asked = new AbortController();
    this.#asked = asked;
    this.#status.textContent = `The server writes ${LABELS[name]}…`;
    try {
      this.#texts[name] = await subtitles(order, name, asked.signal);
      return true;
    } catch (error) {
      if (!isAbort(error)) this.#notice.show(error);
      return false;
    } finally {
      if (this.#asked === asked || this.#asked === null) this.#status.textContent = "";
    }
  }

  #save() {
    const name = `${stemOf(this.#entry.order.file.name)}.${ENDINGS[this.#shown]}`;
    saveFile(name, new Blob([this.#texts[this.#shown]], { type: "text/plain" }));
  }
}

customElements.define("antiphon-formats", Formats);

/** The words as the model wrote them, or where speakers are known a line for each time that somebody speaks. */
export function textOf(heard) {
  const paragraphs = heard.turns.length ? paragraphsOf(heard) : [];
  if (paragraphs.length === 0) return heard.text;
  const lines = [];
  let speaker = null;
  for (const paragraph of paragraphs) {
    const said = paragraph.map(({ before, text }) => before + text).join("");
    if (paragraph[0].speaker === speaker) lines.push(`${lines.pop()} ${said}`);
    else lines.push(`${paragraph[0].speaker}: ${said}`);
    speaker = paragraph[0].speaker;
  }
  return `${lines.join("\n")}\n`;
}
