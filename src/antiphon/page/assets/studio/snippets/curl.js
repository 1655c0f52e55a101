/** A request as a command for curl and a POSIX shell. It knows quoting, and no route. */

import { address } from "../../base/api.js";
import { currentKey } from "../../base/keys.js";

const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/;

/**
 * @param {import("../snippets.js").ShownRequest} request
 * @returns {string} A command of one or more lines. It prints what the server says of an error, and fails.
 */
export function asCurl(request) {
  const options = ["-sS -N --fail-with-body", ...keyOptions(), ...bodyOptions(request)];
  if (request.saveAs && !request.live) options.push(`-o ${quoted(request.saveAs)}`);
  return [`curl ${quoted(address(request.path, request.query).href)}`, ...options].join(" \\\n  ");
}

function keyOptions() {
  return currentKey() ? ['-H "Authorization: Bearer $ANTIPHON_API_KEY"'] : [];
}

function bodyOptions({ json, form, live }) {
  if (json) return ["-H 'Content-Type: application/json'", `--data-raw ${quoted(indented(json))}`];
  if (form) return form.map(([name, value]) => formOption(name, value));
  if (live) return ["-X POST", "-H 'Transfer-Encoding: chunked'", `-T ${quoted(live.file)}`];
  return [];
}

/** JSON as deep as the option that it belongs to. Its texts have no line breaks of their own, only escaped ones. */
function indented(json) {
  return JSON.stringify(json, null, 2).replaceAll("\n", "\n  ");
}

function formOption(name, value) {
  // Where curl reads a file's name it takes ";" and "," for its own, but not between double quotes.
  if (value?.file !== undefined) return `-F ${quoted(`${name}=@"${value.file.replace(/["\\]/g, "\\$&")}"`)}`;
  return `--form-string ${quoted(`${name}=${value}`)}`;
}

/** A word of a shell's: as it is where nothing in it is special, else between single quotes. */
function quoted(text) {
  return PLAIN.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
