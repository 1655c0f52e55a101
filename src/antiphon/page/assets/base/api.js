/** Calls of the server's public API: addresses, keys, errors, streams of events. It knows no route by name. */

import { currentKey } from "./keys.js";

const KEY_SUBPROTOCOL = "openai-insecure-api-key.";
const SUBPROTOCOL = "realtime";

/** What the server answered a call with instead of a result, or (status 0) that no answer came. */
export class ApiError extends Error {
  /**
   * @param {string} message For the reader of the page, as the server said it.
   * @param {{status?: number, code?: string | null, param?: string | null, requestId?: string | null}} [facts]
   */
  constructor(message, { status = 0, code = null, param = null, requestId = null } = {}) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.param = param;
    this.requestId = requestId;
  }
}

/**
 * The whole address of a path of the server, such as `v1/status`: without a slash in front, so that a proxy may serve the
 * page in a folder.
 *
 * @param {string} path
 * @param {Record<string, unknown>} [query] What is null, undefined or "" is left out.
 */
export function address(path, query = {}) {
  const url = new URL(path, document.baseURI);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, String(value));
  }
  return url;
}

/**
 * Call the server.
 *
 * @param {string} path
 * @param {{method?: string, json?: unknown, form?: FormData, query?: Record<string, unknown>, signal?: AbortSignal}} [options]
 * @returns {Promise<Response>} An answer of the 200s.
 * @throws {ApiError} For every other answer, and for none. An aborted call is an `AbortError`, as of `fetch`.
 */
export async function call(path, { method, json, form, query, signal } = {}) {
  const headers = new Headers();
  const key = currentKey();
  if (key) headers.set("authorization", `Bearer ${key}`);
  if (json !== undefined) headers.set("content-type", "application/json");
  const body = json === undefined ? form : JSON.stringify(json);
  let response;
  try {
    response = await fetch(address(path, query), {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers,
      body,
      signal,
      cache: "no-store",
    });
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ApiError("The server cannot be reached.");
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

/** Call the server and read its JSON. Parameters and errors are those of `call`. */
export async function callJson(path, options) {
  return (await call(path, options)).json();
}

/**
 * Read server-sent events.
 *
 * @param {Response} response
 * @param {() => void} [heard] Called for all that comes, comments included.
 * @returns {AsyncGenerator<{id: string | null, data: string}>} Events with data; `id` is the last one that was sent.
 */
export async function* eventsOf(response, heard = () => {}) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let id = null;
  let data = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (line.startsWith("id: ")) id = line.slice(4);
        else if (line.startsWith("data: ")) data.push(line.slice(6));
        else if (line === "" && data.length > 0) {
          yield { id, data: data.join("\n") };
          data = [];
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/**
 * Read the events of an answer that ends in `[DONE]`.
 *
 * @param {Response} response
 * @returns {AsyncGenerator<any>} The JSON of each event.
 * @throws {ApiError} For an `error` event, and where the answer breaks off before its end.
 */
export async function* answerEvents(response) {
  for await (const { data } of eventsOf(response)) {
    if (data === "[DONE]") return;
    const event = JSON.parse(data);
    if (event.type === "error") throw errorOf(event.error, response);
    yield event;
  }
  throw new ApiError("The connection ended before the answer did.", { requestId: requestIdOf(response) });
}

/**
 * Open a WebSocket. The key goes with it as a subprotocol, because a page can set no header there.
 *
 * @param {string} path
 * @param {Record<string, unknown>} [query]
 * @returns {WebSocket}
 * @throws {ApiError} If the key has characters that no subprotocol can hold.
 */
export function openSocket(path, query) {
  const url = address(path, query);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const key = currentKey();
  try {
    return new WebSocket(url, key ? [SUBPROTOCOL, KEY_SUBPROTOCOL + key] : []);
  } catch {
    throw new ApiError("This key has characters that a browser cannot send with a WebSocket.");
  }
}

/** Whether an exception says that the page itself ended a call. */
export function isAbort(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

/** The error that an `error` member of the server's describes. */
export function errorOf(described, response = null) {
  return new ApiError(described?.message ?? "The server failed without a reason.", {
    status: response?.status ?? 0,
    code: described?.code ?? null,
    param: described?.param ?? null,
    requestId: requestIdOf(response),
  });
}

async function refusal(response) {
  try {
    const { error } = await response.json();
    if (error?.message) return errorOf(error, response);
  } catch {
    // Not the server itself: a proxy in front of it, say.
  }
  return new ApiError(`The server answered ${response.status} ${response.statusText}.`, {
    status: response.status,
    requestId: requestIdOf(response),
  });
}

function requestIdOf(response) {
  return response?.headers.get("x-request-id") ?? null;
}
