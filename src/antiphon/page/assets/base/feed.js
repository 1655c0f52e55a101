/**
 * How the server stands, kept up to date: it reads the status, follows the journal, and begins anew when the connection is
 * lost. It shows nothing.
 *
 * Events: `connection` when `connection` changed, `status` when `status` was read, `models` when `models` or `mayManage`
 * changed, `replicas` when those of a server that is scaled out, or the one that is followed, changed, and `entry`, with the entry as its `detail`, for each entry of the journal.
 */

import { call, callJson, eventsOf } from "./api.js";
import { keyChanges } from "./keys.js";

/** How many entries are kept, and how many of those before the page was opened are asked for. */
export const KEPT_ENTRIES = 5000;

const STATUS_EVERY_MS = 250; // however many entries come
const SILENCE_MS = 40_000; // the server's heartbeat is one in 15 s
const RETRY_MS = { first: 500, most: 5000 };

/** The connection: `connecting`, `live`, `lost`, or `locked` where the server wants another key. */
export class Feed extends EventTarget {
  connection = "connecting";
  /** Why the connection is not there: an Error, or null. */
  trouble = null;
  /** The answer of `/v1/status`, and the page's clock (`performance.now()`) when it came; null until then. */
  status = null;
  statusAt = 0;
  /** The models as `/v1/models` lists them, without the entries of aliases. */
  models = [];
  /** Whether the server lets this page manage it, and else its words why not. */
  mayManage = false;
  whyNotManage = "";
  /** The replicas of a server that is scaled out, by name, and which of them is followed; none and "" of any other. */
  replicas = [];
  replica = "";
  /** The last entries of the journal, oldest first; those that tell of a gap are among them. */
  entries = [];

  #lastId = null;
  #reading = null;
  #wake = () => {};
  #statusTimer = 0;
  #isStatusDue = false;
  #isHurried = false;

  /** Begin, and never end. */
  start() {
    keyChanges.addEventListener("change", () => this.retry());
    addEventListener("online", () => this.retry());
    this.#run();
  }

  /** Try again now. */
  retry() {
    this.#isHurried = true;
    this.#reading?.abort(new Error("The page connects again."));
    this.#wake();
  }

  /** Follow another replica from now on. */
  followReplica(name) {
    this.replica = name;
    this.retry();
  }

  /** Read the status again soon: something was done that changes it. */
  refresh() {
    if (this.#statusTimer) {
      this.#isStatusDue = true;
      return;
    }
    this.#statusTimer = setTimeout(() => this.#refreshed(), STATUS_EVERY_MS);
    this.#readStatus().catch(() => {}); // the journal's connection tells what is wrong
  }

  /** Read the models again: what the journal does not tell has changed. */
  async refreshModels() {
    const { data } = await callJson("v1/models");
    this.models = data.filter((model) => !("alias_of" in model));
    this.#tell("models");
  }

  async #run() {
    let pause = RETRY_MS.first;
    for (;;) {
      this.#reading = new AbortController();
      this.#isHurried = false;
      try {
        await this.#readAll();
        await this.#follow(() => {
          pause = RETRY_MS.first;
        });
      } catch (error) {
        if (this.#isHurried) continue;
        this.#become(error.status === 401 ? "locked" : "lost", error);
      }
      await this.#paused(this.connection === "locked" ? null : pause);
      pause = Math.min(2 * pause, RETRY_MS.most);
    }
  }

  async #readAll() {
    const [, , refusal] = await Promise.all([this.#readFirstStatus(), this.refreshModels(), askManagement()]);
    this.mayManage = refusal === null;
    this.whyNotManage = refusal?.message ?? "";
    this.#tell("models");
  }

  /** Each replica has a journal and a status of its own; the front's are no moment that could be followed. */
  async #readFirstStatus() {
    const status = await callJson("v1/status");
    this.replicas = (status.replicas ?? []).filter((replica) => replica.answers).map((replica) => replica.name);
    if (!this.replicas.includes(this.replica)) this.replica = this.replicas[0] ?? "";
    this.#tell("replicas");
    if (this.replica) await this.#readStatus();
    else this.#keepStatus(status);
  }

  async #readStatus() {
    this.#keepStatus(await callJson("v1/status", { query: { replica: this.replica } }));
  }

  #keepStatus(status) {
    this.status = status;
    this.statusAt = performance.now();
    this.#tell("status");
  }

  async #follow(opened) {
    const after = this.#lastId ?? earlier(this.status.last_event_id, KEPT_ENTRIES);
    const reading = this.#reading;
    const response = await call("v1/events", { query: { after, replica: this.replica }, signal: reading.signal });
    opened();
    this.#become("live", null);
    let guard = 0;
    const heard = () => {
      clearTimeout(guard);
      guard = setTimeout(() => reading.abort(new Error("The server is silent.")), SILENCE_MS);
    };
    heard();
    try {
      for await (const { id, data } of eventsOf(response, heard)) {
        if (id) this.#lastId = id;
        this.#take(JSON.parse(data));
      }
    } finally {
      clearTimeout(guard);
    }
    throw new Error("The server ended the connection.");
  }

  #take(entry) {
    this.entries.push(entry);
    if (this.entries.length > 2 * KEPT_ENTRIES) this.entries.splice(0, KEPT_ENTRIES);
    this.dispatchEvent(new CustomEvent("entry", { detail: entry }));
    this.refresh();
    if (entry.type === "registered") this.refreshModels().catch(() => {});
  }

  #refreshed() {
    this.#statusTimer = 0;
    if (this.#isStatusDue) {
      this.#isStatusDue = false;
      this.refresh();
    }
  }

  #become(connection, trouble) {
    this.connection = connection;
    this.trouble = trouble;
    this.#tell("connection");
  }

  #paused(pause) {
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (pause !== null) setTimeout(resolve, pause * (0.75 + Math.random() / 2));
    });
  }

  #tell(type) {
    this.dispatchEvent(new Event(type));
  }
}

/** What the server refuses management with, or null where it does not. */
async function askManagement() {
  try {
    await call("v1/ui/models_root");
    return null;
  } catch (error) {
    if (error.status === 401 || error.status === 403) return error;
    throw error;
  }
}

/** The id of the event so many before this one, in the same run of the server. */
function earlier(id, count) {
  const { run, seq } = /^(?<run>.+)-(?<seq>\d+)$/.exec(id).groups;
  return `${run}-${Math.max(0, Number(seq) - count)}`;
}
