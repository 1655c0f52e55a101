/** What the reader is told while the server cannot be heard. */

import { h } from "../base/dom.js";
import { setText } from "../parts/in_place.js";

/** A line under the header that is there while the connection is lost, or a key is wanted. */
export function connectionBanner(feed) {
  const said = h("p", {});
  // It stays the same element through every attempt, or a click on it could meet none.
  const retry = h("button", { type: "button", onclick: () => feed.retry() }, "Try now");
  const banner = h("div", { class: "connection", role: "status" }, said, retry);
  const update = () => {
    banner.dataset.connection = feed.connection;
    setText(said, words(feed));
    retry.hidden = feed.connection !== "lost";
  };
  feed.addEventListener("connection", update);
  update();
  return banner;
}

function words({ connection, trouble }) {
  if (connection === "lost") return `The connection to the server is lost. ${trouble.message} Trying again…`;
  if (connection === "locked") return "This server wants a key. Enter it with the button “Key”.";
  return "";
}
