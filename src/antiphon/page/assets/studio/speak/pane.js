/** The pane "Speak" of the studio: the form, what it leads to, and the results of this page. */

import { ApiError } from "../../base/api.js";
import { h } from "../../base/dom.js";
import { place } from "../../base/format.js";
import { SpeakForm } from "./form.js";
import { Spoken } from "./spoken.js";
import { Utterance } from "./utterance.js";

/** What is kept at most. The newest result always is. */
const MOST_RESULTS = 20;
const MOST_BYTES = 512 * 1024 * 1024;

export class SpeakPane extends HTMLElement {
  #form;
  #heading = h("h3", { tabIndex: -1 }, "On this page");
  #empty = h(
    "p",
    { class: "empty" },
    `Nothing yet. The last ${MOST_RESULTS} results stay here until the page is closed.`,
  );
  #list = h("ol", { class: "speak-results" });
  /** The one that is being spoken, or was last. */
  #utterance = null;
  #count = 0;

  constructor(feed) {
    super();
    this.#form = new SpeakForm(feed);
    this.#form.addEventListener("speak", () => this.#speak());
    this.#form.addEventListener("stop", () => this.#stop());
    const results = h("section", { "aria-label": "Results" }, this.#heading, this.#empty, this.#list);
    this.append(h("h2", { class: "unseen" }, "Speak"), h("div", { class: "speak" }, this.#form, results));
  }

  async #speak() {
    this.#stop();
    const utterance = new Utterance(this.#form.body());
    this.#utterance = utterance;
    this.#form.notice.show(null);
    this.#form.isSpeaking = true;
    this.#form.say("Waiting for the model…");
    utterance.addEventListener("begin", () => this.#begin(utterance));
    let error = null;
    try {
      await utterance.run();
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown;
      error = thrown;
    }
    if (utterance === this.#utterance) this.#end(utterance, error);
  }

  /** End what is spoken, and be silent. */
  #stop() {
    this.#utterance?.stop();
    for (const spoken of this.#results()) spoken.pause();
  }

  #begin(utterance) {
    this.#count += 1;
    const spoken = new Spoken(this.#count, utterance);
    const item = h("li", {}, spoken);
    spoken.addEventListener("use", () => this.#form.use(spoken.body));
    spoken.addEventListener("remove", () => this.#remove(item));
    this.#list.prepend(item);
    this.#form.say("Speaking…");
    this.#bound();
    spoken.play();
  }

  #end({ state, recording }, error) {
    this.#form.isSpeaking = false;
    this.#form.notice.show(error);
    const said = {
      whole: `Spoken: ${place(recording?.duration ?? 0)}.`,
      stopped: "Stopped.",
      cut: "Cut off.",
      waiting: "",
    };
    this.#form.say(said[state]);
    this.#bound();
  }

  /** Remove a result, and leave the keyboard at the next one. */
  #remove(item) {
    const next = item.nextElementSibling ?? item.previousElementSibling;
    item.firstElementChild.discard();
    item.remove();
    this.#empty.hidden = this.#list.childElementCount > 0;
    (next?.querySelector("button") ?? this.#heading).focus();
  }

  #bound() {
    let held = 0;
    for (const [index, spoken] of this.#results().entries()) {
      held += spoken.byteLength;
      if (index === 0 || (index < MOST_RESULTS && held <= MOST_BYTES)) continue;
      spoken.discard();
      spoken.parentElement.remove();
    }
    this.#empty.hidden = this.#list.childElementCount > 0;
  }

  #results() {
    return Array.from(this.#list.children, (item) => item.firstElementChild);
  }
}

customElements.define("antiphon-speak", SpeakPane);
