/** The view "Models": the models, and for who may manage them the packages. What they do is their own. */

import { h } from "../base/dom.js";
import { setOrHide } from "../parts/in_place.js";
import { tabs } from "../parts/tabs.js";
import { Ages } from "./ages.js";
import { ModelList } from "./list.js";
import { Operations } from "./operations.js";
import { PackagesPane } from "./packages.js";
import { Plans } from "./plans.js";

export class ModelsView extends HTMLElement {
  #feed;
  #packages;
  #tabs;
  #mayManage = false;
  #whyNot = h("p", { class: "empty" });

  /** @param {import("../base/feed.js").Feed} feed */
  constructor(feed) {
    super();
    this.#feed = feed;
    const ages = new Ages(() => !(this.hidden || document.hidden));
    const operations = new Operations(ages);
    const plans = new Plans(feed, operations);
    this.#packages = new PackagesPane(feed, plans);
    const models = new ModelList(feed, ages, plans, () => this.#packages.register());
    this.#tabs = tabs("What to see", [
      { id: "all-models", label: "Models", panel: models.element },
      { id: "packages", label: "Packages", panel: this.#packages.element },
    ]);
    this.append(h("h1", {}, "Models"), this.#whyNot, operations.element, this.#tabs);
    // Others install packages, too: what is shown is as it was when it was last looked at.
    for (const type of ["click", "keydown"]) {
      this.#tabs
        .querySelector('[role="tablist"]')
        .addEventListener(type, () => this.#mayManage && this.#packages.refresh());
    }
    feed.addEventListener("models", () => this.#permit());
    this.#permit();
  }

  /** Show what may be done, and no more: a key may be exchanged at any time. */
  #permit() {
    const [before, mayManage] = [this.#mayManage, this.#feed.mayManage];
    const list = this.#tabs.querySelector('[role="tablist"]');
    this.#mayManage = mayManage;
    const { whyNotManage } = this.#feed;
    setOrHide(this.#whyNot, whyNotManage && `Here models can only be looked at: ${whyNotManage}.`);
    list.hidden = !mayManage;
    if (!mayManage) list.querySelector('[role="tab"]').click();
    else if (!before) this.#packages.refresh();
  }
}

customElements.define("antiphon-models", ModelsView);
