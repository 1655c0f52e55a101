/** Gives the reader a file to keep. It knows nothing of what is in it. */

import { h } from "../base/dom.js";

/**
 * Have the browser save a file, as if its reader had followed a link to it.
 *
 * @param {string} name
 * @param {Blob} content
 */
export function saveFile(name, content) {
  const url = URL.createObjectURL(content);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url)); // the browser has begun by then
}

/** A file's name without what follows the last dot. */
export function stemOf(name) {
  return name.replace(/\.[^.]*$/, "") || name;
}
