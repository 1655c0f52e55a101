/** The pane "Speak" of the studio. */

import { h } from "../../base/dom.js";

export class SpeakPane extends HTMLElement {
  constructor(feed) {
    super();
    this.feed = feed;
    this.append(h("h2", {}, "Speak"));
  }
}

customElements.define("antiphon-speak", SpeakPane);
