/** The dialog for the key that the page calls the server with. */

import { h } from "../base/dom.js";
import { currentKey, isRemembered, useKey } from "../base/keys.js";
import { field } from "../parts/fields.js";

/** The button that opens it. It opens by itself when the server first asks for a key. */
export function keyButton(feed) {
  const input = h("input", { type: "password", autocomplete: "off", spellcheck: false });
  const remember = h("input", { type: "checkbox" });
  const form = h(
    "form",
    { method: "dialog", onsubmit: () => useKey(input.value.trim(), remember.checked) },
    h("h2", {}, "Key"),
    field("API key, or admin key", input, "An admin key opens the management of models, too. Empty uses none."),
    h("label", { class: "check" }, remember, " Remember it in this browser"),
    h(
      "div",
      { class: "buttons" },
      h("button", { type: "submit", class: "primary" }, "Use this key"),
      h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
    ),
  );
  const dialog = h("dialog", { "aria-label": "Key" }, form);
  const open = () => {
    if (dialog.open) return;
    input.value = currentKey();
    remember.checked = isRemembered();
    dialog.showModal();
  };
  let hasAsked = false;
  feed.addEventListener("connection", () => {
    if (feed.connection === "locked" && !hasAsked) {
      hasAsked = true;
      open();
    }
  });
  document.body.append(dialog);
  return h("button", { type: "button", class: "quiet", onclick: open }, "Key");
}
