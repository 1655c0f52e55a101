/** What the reader is told while the server cannot be heard. */

import { fill, h } from "../base/dom.js";

/** A line under the header that is there while the connection is lost. */
export function connectionBanner(feed) {
  const banner = h("div", { class: "connection", role: "status" });
  const update = () => {
    banner.dataset.connection = feed.connection;
    if (feed.connection === "lost") {
      const retry = h("button", { type: "button", onclick: () => feed.retry() }, "Try now");
      fill(banner, h("p", {}, `The connection to the server is lost. ${feed.trouble.message} Trying again…`), retry);
    } else if (feed.connection === "locked") {
      fill(banner, h("p", {}, "This server wants a key. Enter it with the button “Key”."));
    } else {
      fill(banner);
    }
  };
  feed.addEventListener("connection", update);
  update();
  return banner;
}
