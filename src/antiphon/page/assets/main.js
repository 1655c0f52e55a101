/** The page: its views, and which one is shown. */

import { ActivityView } from "./activity/view.js";
import { h } from "./base/dom.js";
import { Feed } from "./base/feed.js";
import { ModelsView } from "./models/view.js";
import { connectionBanner } from "./shell/connection.js";
import { keyButton } from "./shell/key.js";
import { replicaSelect } from "./shell/replica.js";
import { themeButton } from "./shell/theme.js";
import { StudioView } from "./studio/view.js";

/** By the name in the address. A view is made when it is first shown, and kept: what happens in it goes on. */
const VIEWS = { studio: StudioView, models: ModelsView, activity: ActivityView };
const TITLES = { studio: "Studio", models: "Models", activity: "Activity" };
const FIRST = "studio";

const feed = new Feed();
const main = document.querySelector("main");
const nav = document.querySelector("nav");
const made = new Map();

function namedByAddress() {
  const name = location.hash.replace(/^#\//, "");
  return name in VIEWS ? name : FIRST;
}

function show(name) {
  if (!made.has(name)) {
    const view = new VIEWS[name](feed);
    made.set(name, view);
    main.append(view);
  }
  for (const [other, view] of made) view.hidden = other !== name;
  for (const link of nav.querySelectorAll("a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${TITLES[name]} - antiphon`;
}

for (const [name, title] of Object.entries(TITLES)) {
  nav.append(h("a", { href: `#/${name}`, "data-view": name }, title));
}
document.querySelector(".shell-tools").append(replicaSelect(feed), keyButton(feed), themeButton());
document.querySelector("header").after(connectionBanner(feed));

addEventListener("hashchange", () => {
  if (location.hash === "#main") return; // the link that skips the header
  show(namedByAddress());
  main.focus();
});
feed.start();
show(namedByAddress());
