/** The view "Models". */

import { h } from "../base/dom.js";

export class ModelsView extends HTMLElement {
  constructor(feed) {
    super();
    this.feed = feed;
    this.append(h("h1", {}, "Models"));
  }
}

customElements.define("antiphon-models", ModelsView);
