/** The key that this browser calls the server with. It knows where it is kept, and no route. */

const NAME = "antiphon.key";

/** Tells of a new key with a `change` event. */
export const keyChanges = new EventTarget();

/** @returns {string} The key, or "" if there is none. */
export function currentKey() {
  return sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME) ?? "";
}

/**
 * Use another key from now on; "" uses none.
 *
 * @param {string} key
 * @param {boolean} remember Keep it when the tab is closed.
 */
export function useKey(key, remember) {
  sessionStorage.removeItem(NAME);
  localStorage.removeItem(NAME);
  if (key) (remember ? localStorage : sessionStorage).setItem(NAME, key);
  keyChanges.dispatchEvent(new Event("change"));
}

/** Whether the key outlives the tab. */
export function isRemembered() {
  return localStorage.getItem(NAME) !== null;
}
