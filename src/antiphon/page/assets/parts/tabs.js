/** Tabs, as the ARIA practices have them: arrow keys go from one to the next. */

import { freshId, h } from "../base/dom.js";

const STEPS = { ArrowRight: 1, ArrowLeft: -1 };

/**
 * @param {string} label What the tabs are a choice of.
 * @param {{id: string, label: string, panel: HTMLElement}[]} entries The first is shown. Panels are kept, and hidden.
 * @returns {HTMLElement}
 */
export function tabs(label, entries) {
  const buttons = entries.map((entry) => tab(entry));
  const list = h("div", { class: "tabs", role: "tablist", "aria-label": label, onkeydown: step }, ...buttons);

  function tab({ id, label: text, panel }) {
    panel.id ||= freshId(id);
    panel.setAttribute("role", "tabpanel");
    const button = h("button", { type: "button", role: "tab", id: freshId("tab"), "aria-controls": panel.id }, text);
    panel.setAttribute("aria-labelledby", button.id);
    button.addEventListener("click", () => show(button));
    return button;
  }

  function show(chosen) {
    buttons.forEach((button, index) => {
      const isChosen = button === chosen;
      button.setAttribute("aria-selected", String(isChosen));
      button.tabIndex = isChosen ? 0 : -1;
      entries[index].panel.hidden = !isChosen;
    });
  }

  function step(event) {
    const by = STEPS[event.key];
    if (!by) return;
    const at = buttons.indexOf(document.activeElement);
    const next = buttons[(at + by + buttons.length) % buttons.length];
    next.focus();
    show(next);
  }

  show(buttons[0]);
  return h("div", { class: "tabbed" }, list, ...entries.map((entry) => entry.panel));
}
