/** Elements, built in one expression. It knows no element by name, and nothing of antiphon. */

/**
 * Build an element.
 *
 * @param {string} tag
 * @param {Record<string, unknown>} [properties] `class`, `role`, `for`, `data-*` and `aria-*` are attributes, `on*` are listeners
 *   (`onclick`), all else are the properties of the element (`value`, `hidden`, `htmlFor`).
 * @param {...(Node | string | number | null | undefined | false)} children What is null, undefined or false is left out.
 * @returns {HTMLElement}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else if (isAttribute(name)) {
      if (value !== null && value !== undefined && value !== false) element.setAttribute(name, String(value));
    } else {
      element[name] = value;
    }
  }
  element.append(...present(children));
  return element;
}

/** As `h`, for a drawing: every property is an attribute. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...present(children));
  return element;
}

/** Give an element other children. */
export function fill(element, ...children) {
  element.replaceChildren(...present(children));
  return element;
}

/** An id that no other element of the page has, for labels. */
export function freshId(stem) {
  lastId += 1;
  return `${stem}-${lastId}`;
}

let lastId = 0;

function isAttribute(name) {
  return name === "class" || name === "role" || name === "for" || name.startsWith("data-") || name.startsWith("aria-");
}

function present(children) {
  return children.flat().filter((child) => child !== null && child !== undefined && child !== false);
}
