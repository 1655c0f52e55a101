/** Where a recording comes from that is a file already: chosen, dropped or pasted. It asks nothing of it. */

import { h } from "../../base/dom.js";
import { field } from "../../parts/fields.js";

const ENDINGS = ".wav,.w64,.flac,.ogg,.oga,.opus,.mp3,.mp4,.m4a,.webm,.mkv,.aac,.aif,.aiff,.au,.caf";

/** Gives it with a `file` event, whose `detail` is the File. */
export class FileSource extends HTMLElement {
  #input = h("input", {
    type: "file",
    accept: `audio/*,video/mp4,video/webm,${ENDINGS}`,
    onchange: () => this.#give(this.#input),
  });
  #paste = (event) => {
    if (this.checkVisibility()) this.#take(event, event.clipboardData);
  };

  constructor() {
    super();
    this.append(field("Audio file", this.#input, "Choose one, drop it anywhere here, or paste it."));
  }

  connectedCallback() {
    document.addEventListener("paste", this.#paste);
  }

  disconnectedCallback() {
    document.removeEventListener("paste", this.#paste);
  }

  /** Take what is dropped on an element, too. */
  watch(element) {
    element.addEventListener("dragover", (event) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      element.classList.add("dropping");
    });
    element.addEventListener("dragleave", (event) => {
      if (!element.contains(event.relatedTarget)) element.classList.remove("dropping");
    });
    element.addEventListener("drop", (event) => {
      element.classList.remove("dropping");
      this.#take(event, event.dataTransfer);
    });
  }

  #take(event, transfer) {
    if (!transfer?.files.length) return; // text that is pasted into a field, say
    event.preventDefault();
    this.#input.value = ""; // what it shows is not what was taken
    this.#give(transfer);
  }

  #give({ files: [file] }) {
    if (file) this.dispatchEvent(new CustomEvent("file", { detail: file }));
  }
}

customElements.define("antiphon-file-source", FileSource);
