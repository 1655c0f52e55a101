/** A `<details>` element whose content is written only when it is opened. */

/**
 * Call `write` whenever a `<details>` element opens, before its content is painted.
 *
 * The `toggle` event would be too late: the browser queues it as a separate task, so the element would be open and empty for a
 * moment. A mutation observer runs as a microtask, right after the click or script that opened the element.
 *
 * @param {HTMLElement} details
 * @param {() => void} write
 */
export function onOpened(details, write) {
  new MutationObserver(() => {
    if (details.open) write();
  }).observe(details, { attributes: true, attributeFilter: ["open"] });
}
