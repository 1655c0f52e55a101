/** A request as code that can be run: the words around it, and the copying. How each language says it is below `snippets/`. */

import { h } from "../base/dom.js";
import { keyChanges } from "../base/keys.js";
import { onOpened } from "../parts/disclosure.js";
import { copyButton } from "../parts/fields.js";
import { tabs } from "../parts/tabs.js";
import { asCurl } from "./snippets/curl.js";
import { asPython } from "./snippets/python.js";

/**
 * One call of the API, as a program makes it. It is a POST if it has a body, else a GET.
 *
 * @typedef {object} ShownRequest
 * @property {string} path As for `call`: "v1/audio/speech".
 * @property {Record<string, unknown>} [query] What is null, undefined or "" is left out.
 * @property {Record<string, unknown>} [json] The body, if it is JSON. What is undefined is left out.
 * @property {[string, string | number | boolean | {file: string}][]} [form] The body, if it is a form. A name that ends in
 *   `[]` may come again; `{file}` is the name of a file where the code is run.
 * @property {{file: string}} [live] The body, if it is raw audio that is sent while it is made: here from a file.
 * @property {string} [saveAs] The file that the answer goes into. Without, and where it is live, it is printed.
 */

const LANGUAGES = [
  { id: "curl", label: "curl", write: asCurl },
  { id: "python", label: "Python", write: asPython },
];

/** The code for one request, closed at first. The key is never in it, only the variable that holds it. */
export class Snippets extends HTMLElement {
  #request = null;
  #codes = LANGUAGES.map(() => h("pre", { tabIndex: 0 }));
  #details = h("details", {}, h("summary", {}, "This request as code"));
  #write = () => {
    if (!this.#request || !this.#details.open) return; // a long text is not written out for nobody
    LANGUAGES.forEach(({ write }, index) => {
      this.#codes[index].textContent = write(this.#request);
    });
  };

  constructor() {
    super();
    const entries = LANGUAGES.map(({ id, label, write }, index) => {
      this.#codes[index].setAttribute("aria-label", `${label}, this request`);
      const copy = copyButton(`Copy ${label}`, () => write(this.#request));
      return { id, label, panel: h("div", { class: "snippet" }, this.#codes[index], copy) };
    });
    this.#details.append(tabs("Language of the code", entries));
    this.append(this.#details);
    onOpened(this.#details, this.#write);
  }

  connectedCallback() {
    keyChanges.addEventListener("change", this.#write);
  }

  disconnectedCallback() {
    keyChanges.removeEventListener("change", this.#write);
  }

  /** @param {ShownRequest} request Kept, and not copied. */
  show(request) {
    this.#request = request;
    this.#write();
  }
}

customElements.define("antiphon-snippets", Snippets);
