/** The view "Studio": speaking and listening, one beside the other. What they do is their own. */

import { h } from "../base/dom.js";
import { tabs } from "../parts/tabs.js";
import { ListenPane } from "./listen/pane.js";
import { SpeakPane } from "./speak/pane.js";

export class StudioView extends HTMLElement {
  constructor(feed) {
    super();
    this.append(
      h("h1", {}, "Studio"),
      tabs("What to do", [
        { id: "speak", label: "Speak", panel: new SpeakPane(feed) },
        { id: "listen", label: "Listen", panel: new ListenPane(feed) },
      ]),
    );
  }
}

customElements.define("antiphon-studio", StudioView);
