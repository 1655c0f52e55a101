/** What is shown, changed in place: an element that says the same as before is not touched. It knows no content. */

/** Give an element a text. Its text node stays the same one, so that nothing is laid out that did not change. */
export function setText(element, text) {
  const node = element.firstChild;
  if (!node) element.append(document.createTextNode(text));
  else if (node.data !== text) node.data = text;
}

/** Give an element an attribute; null takes it away. */
export function setAttribute(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
}

/** Hide an element where there is nothing to say, and say it in it where there is. */
export function setOrHide(element, text) {
  element.hidden = text === "";
  setText(element, text);
}

/**
 * The children of an element, one for each entry of a list, by key.
 *
 * @template E
 */
export class Keyed {
  #parent;
  #keyOf;
  #make;
  #parts = new Map();

  /**
   * @param {HTMLElement} parent It has no other children.
   * @param {(entry: E) => unknown} keyOf
   * @param {(entry: E) => {element: HTMLElement, update: (entry: E) => void, drop?: () => void}} make Called once a key.
   */
  constructor(parent, keyOf, make) {
    this.#parent = parent;
    this.#keyOf = keyOf;
    this.#make = make;
  }

  /** The parts that are shown now. */
  get parts() {
    return [...this.#parts.values()];
  }

  /** Show these entries, in this order; their keys differ. */
  show(entries) {
    const wanted = new Map(entries.map((entry) => [this.#keyOf(entry), entry]));
    this.#dropOthers(wanted);
    let at = this.#parent.firstElementChild;
    for (const [key, entry] of wanted) {
      const part = this.#part(key, entry);
      part.update(entry);
      if (part.element === at) at = at.nextElementSibling;
      else this.#parent.insertBefore(part.element, at);
    }
  }

  #part(key, entry) {
    if (!this.#parts.has(key)) this.#parts.set(key, this.#make(entry));
    return this.#parts.get(key);
  }

  #dropOthers(wanted) {
    for (const [key, part] of this.#parts) {
      if (wanted.has(key)) continue;
      part.element.remove();
      part.drop?.();
      this.#parts.delete(key);
    }
  }
}
