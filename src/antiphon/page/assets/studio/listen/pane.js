/** The pane "Listen" of the studio: from a recording to what is said in it. Its parts do the work; it joins them. */

import { isAbort } from "../../base/api.js";
import { fill, h } from "../../base/dom.js";
import { bytes, place } from "../../base/format.js";
import { Notice } from "../../parts/fields.js";
import { fromText } from "./heard.js";
import { History } from "./history.js";
import { listen } from "./listening.js";
import { Options } from "./options.js";
import { RecordPanel } from "./record_panel.js";
import { ResultView } from "./result_view.js";
import { FileSource } from "./source.js";

export class ListenPane extends HTMLElement {
  #file = null;
  #running = null;
  #source = new FileSource();
  #chosen = h("span", { class: "listen-chosen" }, "Choose or record something first.");
  #options;
  #recorder;
  #start = h("button", { type: "button", class: "primary", disabled: true, onclick: () => this.#pressed() });
  #progress = h("progress", { "aria-label": "Progress", hidden: true });
  #status = h("p", { class: "listen-status", role: "status" });
  #text = h("p", { class: "listen-untimed", "aria-label": "Heard until now", tabIndex: 0, hidden: true });
  #notice = new Notice();
  #history = new History();
  #result = h("div", { class: "listen-result" }, h("p", { class: "empty" }, "What is heard will stand here."));

  constructor(feed) {
    super();
    this.#options = new Options(feed);
    this.#recorder = new RecordPanel(() => this.#options.captionOrder());
    this.#source.watch(this);
    this.#source.addEventListener("file", ({ detail }) => this.#choose(detail));
    this.#recorder.addEventListener("recorded", ({ detail }) => this.#choose(detail));
    this.#recorder.addEventListener("captioned", ({ detail }) => this.#keepCaptions(detail));
    this.#options.addEventListener("change", () => this.#label());
    this.#history.addEventListener("choose", ({ detail }) => fill(this.#result, new ResultView(detail)));
    this.#build();
    this.#label();
  }

  #build() {
    const source = h("section", { class: "card" }, h("h2", {}, "Recording"), this.#source, this.#recorder);
    const run = h("div", { class: "buttons" }, this.#start, this.#chosen, this.#progress);
    const asked = h("section", { class: "card" }, h("h2", {}, "What to do"), this.#options, run);
    asked.append(this.#status, this.#text, this.#notice);
    const heard = h("section", { class: "card listen-heard" }, h("h2", {}, "What is heard"), this.#result);
    const asking = h("div", { class: "listen-asking" }, source, asked);
    this.append(h("div", { class: "listen-columns" }, asking, heard, this.#history));
  }

  #choose(file) {
    this.#file = file;
    this.#chosen.textContent = `${file.name}, ${bytes(file.size)}`;
    this.#start.disabled = false;
    this.#notice.show(null);
  }

  #keepCaptions({ file, order, request, text }) {
    const result = { heard: fromText(text), answer: { text }, requests: [request] };
    this.#history.add({ order: { ...order, file }, result, label: "Live captions", at: new Date() });
  }

  #pressed() {
    if (this.#running)
      this.#running.abort(); // the server is told by the end of the connection
    else this.#run();
  }

  async #run() {
    const order = this.#options.orderFor(this.#file);
    const label = this.#options.label;
    this.#running = new AbortController();
    this.#notice.show(null);
    this.#label();
    try {
      const result = await listen(order, this.#running.signal, (progress) => this.#show(progress));
      this.#history.add({ order, result, label, at: new Date() });
      this.#conclude(result.error ?? null);
    } catch (error) {
      this.#conclude(error);
    }
    this.#running = null;
    this.#text.hidden = true;
    this.#label();
  }

  #conclude(error) {
    const isCancelled = isAbort(error);
    if (!isCancelled) this.#notice.show(error);
    if (isCancelled) this.#status.textContent = "Cancelled.";
    else this.#status.textContent = error ? "" : "Done.";
  }

  #show({ step, text, until, duration }) {
    if (this.#status.textContent !== step) this.#status.textContent = step; // else it is read out with each piece
    if (text !== undefined) {
      this.#text.hidden = false;
      this.#text.textContent = text;
    }
    if (until === undefined) {
      this.#progress.removeAttribute("value");
    } else {
      this.#progress.max = duration;
      this.#progress.value = until;
      this.#progress.title = `${place(until)} of ${place(duration)}`;
    }
  }

  /** The one button begins and ends a run, so that the keyboard stays where it is. */
  #label() {
    this.#start.textContent = this.#running ? "Cancel" : this.#options.label;
    this.#start.classList.toggle("primary", !this.#running);
    this.#progress.hidden = !this.#running;
  }
}

customElements.define("antiphon-listen", ListenPane);
