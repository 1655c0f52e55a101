/** The view "Activity". */

import { h } from "../base/dom.js";

export class ActivityView extends HTMLElement {
  constructor(feed) {
    super();
    this.feed = feed;
    this.append(h("h1", {}, "Activity"));
  }
}

customElements.define("antiphon-activity", ActivityView);
