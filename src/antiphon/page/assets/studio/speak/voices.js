/** The select of a model's voices. It knows the route that lists them, and what is chosen; nothing of the rest of the form. */

import { ApiError, callJson, isAbort } from "../../base/api.js";
import { h } from "../../base/dom.js";

/** By kind, in the order in which the server looks for a name. */
const GROUPS = { preset: "Presets", model: "Voices of the model", library: "Voice library" };

/** A select whose first option, "", is the voice that the model takes by itself. */
export class VoiceSelect {
  element = h("select");
  #wanted = "";
  #asking = null;
  #listing = Promise.resolve();

  constructor() {
    this.element.append(h("option", { value: "" }, "Default"));
    this.element.addEventListener("change", () => {
      this.#wanted = this.element.value;
    });
  }

  get value() {
    return this.element.value;
  }

  /** Choose a voice, now or as soon as it is listed. */
  set value(voice) {
    this.#wanted = voice;
    this.element.value = voice;
    if (this.element.selectedIndex < 0) this.element.value = "";
  }

  /** Offer the voices of a model, or only the default if they cannot be read. An `input` event follows in both cases. */
  offer(model) {
    this.#listing = this.#list(model);
  }

  /** Wait for the voices of the latest model. Until they are listed, `value` may be a voice of another model. */
  async listed() {
    let listing;
    do {
      listing = this.#listing;
      await listing;
    } while (listing !== this.#listing); // another model was selected in the meantime
  }

  async #list(model) {
    this.#asking?.abort();
    this.#asking = new AbortController();
    try {
      const query = { model };
      const { voices, default_preset } = await callJson("v1/audio/voices", { query, signal: this.#asking.signal });
      this.#fill(voices, default_preset);
    } catch (error) {
      if (isAbort(error)) return;
      if (!(error instanceof ApiError)) throw error;
      this.#fill([], null); // the banner tells what is wrong with the connection, and a request what is with the model
    }
  }

  #fill(voices, preset) {
    const groups = Object.entries(GROUPS).map(([kind, label]) => {
      const options = voices
        .filter((voice) => voice.kind === kind)
        .map(({ id, name }) => h("option", { value: id }, name));
      return options.length > 0 && h("optgroup", { label }, ...options);
    });
    const own = h("option", { value: "" }, preset ? `Default (${preset})` : "Default");
    this.element.replaceChildren(own, ...groups.filter(Boolean));
    this.value = this.#wanted;
    this.element.dispatchEvent(new Event("input", { bubbles: true }));
  }
}
