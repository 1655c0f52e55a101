/** The pane "Listen" of the studio. */

import { h } from "../../base/dom.js";

export class ListenPane extends HTMLElement {
  constructor(feed) {
    super();
    this.feed = feed;
    this.append(h("h2", {}, "Listen"));
  }
}

customElements.define("antiphon-listen", ListenPane);
