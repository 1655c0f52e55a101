/** Controls with their labels, and what they show when something goes wrong. They know no route. */

import { freshId, h } from "../base/dom.js";

/**
 * A control under its label.
 *
 * @param {string} label
 * @param {HTMLElement} control
 * @param {string} [hint] Said below it, and read out with it.
 */
export function field(label, control, hint = "") {
  control.id ||= freshId("field");
  const told = hint && h("small", { id: freshId("hint"), class: "field-hint" }, hint);
  if (told) control.setAttribute("aria-describedby", told.id);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, told);
}

/** A select of these `[value, label]` pairs. */
export function choice(pairs, properties = {}) {
  return h("select", properties, ...pairs.map(([value, label]) => h("option", { value }, label ?? value)));
}

/** Give a select other options, and keep what is chosen where it is still among them. */
export function setChoices(select, pairs) {
  const chosen = select.value;
  select.replaceChildren(...pairs.map(([value, label]) => h("option", { value }, label ?? value)));
  if (pairs.some(([value]) => value === chosen)) select.value = chosen;
}

/** A place where errors are shown, and read out. `show(error)` takes an Error, or null for none. */
export class Notice extends HTMLElement {
  connectedCallback() {
    this.setAttribute("role", "alert");
    this.hidden = this.childElementCount === 0;
  }

  show(error) {
    this.hidden = error === null;
    if (error === null) {
      this.replaceChildren();
      return;
    }
    const facts = [error.param && `field ${error.param}`, error.code, error.requestId && `request ${error.requestId}`];
    const told = facts.filter(Boolean).join(" · ");
    this.replaceChildren(h("p", {}, error.message), told ? h("small", {}, told) : "");
  }
}

customElements.define("antiphon-notice", Notice);

/**
 * A button that copies a text, and says that it did.
 *
 * @param {string} label
 * @param {() => string | Promise<string>} text
 */
export function copyButton(label, text) {
  const button = h("button", { type: "button", class: "quiet", onclick: copy }, label);
  const said = h("span", { class: "unseen", role: "status" });

  async function copy() {
    await copyText(await text());
    button.textContent = "Copied";
    said.textContent = `${label}: copied`;
    setTimeout(() => {
      button.textContent = label;
      said.textContent = "";
    }, 1500);
  }

  return h("span", { class: "copy" }, button, said);
}

async function copyText(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  // Without HTTPS, on another machine's address, a page has no clipboard but this one.
  const area = h("textarea", { value: text, class: "unseen" });
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
