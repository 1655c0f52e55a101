/** Light or dark: as the reader's system says, or as the reader does. */

import { h } from "../base/dom.js";

const NAME = "antiphon.theme";
const ORDER = ["system", "light", "dark"];
const LABELS = { system: "Theme: system", light: "Theme: light", dark: "Theme: dark" };

/** A button that goes through the three. */
export function themeButton() {
  const button = h("button", { type: "button", class: "quiet", onclick: () => use(next(current())) });

  function use(theme) {
    localStorage.setItem(NAME, theme);
    document.documentElement.style.colorScheme = theme === "system" ? "light dark" : theme;
    button.textContent = LABELS[theme];
  }

  use(current());
  return button;
}

function current() {
  const theme = localStorage.getItem(NAME);
  return ORDER.includes(theme) ? theme : ORDER[0];
}

function next(theme) {
  return ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length];
}
