/**
 * What the journal's entries say of requests: how many run and wait over time, and how they ended. It has no element, reads no
 * clock, and takes what it is given in the journal's order.
 *
 * Only requests are counted. Claims that manage a model are no load that anybody sent.
 */

import { KEPT_STEPS, Levels } from "./levels.js";
import { Outcomes } from "./outcomes.js";

const REQUEST = "infer"; // the operation that entries leave out
const BEFALLS = ["evicted", "died", "load_failed"];

export class Ledger {
  outcomes = new Outcomes();
  /** The time of the first entry, in seconds since 1970; null before it. */
  firstTime = null;
  /** The time of the last one. */
  lastTime = null;

  /** @type {Map<string, Levels>} By model; "" is all together. */
  #levels = new Map();
  /** @type {Map<string, Map<number, {entered: number | null, granted: number | null}>>} Monotonic seconds of the server. */
  #claims = new Map();
  #seq = null;
  #status = null;
  #isSettled = false;
  #began = null;

  /**
   * Take the next entry. What no claim is known of, because it is from before the first entry, is counted all the same.
   *
   * @param {any} entry As docs/events.md has it.
   */
  take(entry) {
    if (entry.type === "gap") this.#lose();
    if (!("seq" in entry)) return;
    if (this.#began === null) this.#begin(entry);
    this.#settleAt(entry.seq - 1);
    this.#apply(entry);
    this.#seq = entry.seq;
    this.lastTime = entry.time;
    this.#settleAt(entry.seq);
  }

  /** Take the answer of `/v1/status`: it tells of those that run and wait since before the first entry. */
  compare(status) {
    this.#status = status;
    this.#settleAt(this.#seq);
  }

  /** How many requests of a model ("" is all) run and wait now; null until that is known. */
  now(model = "") {
    if (!this.#isSettled) return null;
    const { active, waiting } = this.#levels.get(model) ?? { active: 0, waiting: 0 };
    return { active, waiting };
  }

  /** The steps of a model ("" is all) in a time, `most` at most. */
  steps(from, to, model = "", most = KEPT_STEPS) {
    return this.#levels.get(model)?.between(from, to, most) ?? [];
  }

  /** From when on all ends of requests are known, in seconds since 1970. */
  get knownSince() {
    return this.outcomes.isCut ? this.outcomes.kept[0].time : this.firstTime;
  }

  #begin({ time }) {
    this.#began = time;
    this.firstTime ??= time;
    for (const levels of this.#levels.values()) levels.begin(time);
    this.#levelsOf("");
  }

  #lose() {
    for (const levels of this.#levels.values()) levels.end(this.lastTime);
    this.#claims.clear();
    this.#isSettled = false;
    this.#began = null;
    this.#seq = null;
  }

  #settleAt(seq) {
    if (this.#isSettled || this.#began === null || this.#status === null || seqOf(this.#status) !== seq) return;
    const all = { active: 0, waiting: 0 };
    for (const { id, active_slots: active, queued_requests: waiting } of this.#status.models) {
      this.#levelsOf(id).settle(active, waiting);
      all.active += active;
      all.waiting += waiting;
    }
    this.#levelsOf("").settle(all.active, all.waiting);
    this.#isSettled = true;
  }

  #apply(entry) {
    const change = { active: 0, waiting: 0 };
    const isRequest = (entry.operation ?? REQUEST) === REQUEST;
    if (entry.type === "submit" && isRequest) this.#enter(entry, change);
    if (entry.type === "release" && isRequest) this.#finish(entry, change);
    if (entry.type === "withdraw" && isRequest) this.#leave(entry, { what: "left" }, entry.waiter, change);
    if (BEFALLS.includes(entry.type)) this.outcomes.add({ time: entry.time, model: entry.model, what: entry.type });
    for (const decision of entry.decided ?? []) {
      if ((decision.operation ?? REQUEST) === REQUEST) this.#decide(entry, decision, change);
    }
    if (change.active === 0 && change.waiting === 0) return;
    for (const name of ["", entry.model]) this.#levelsOf(name).change(entry.time, change.active, change.waiting);
  }

  #enter({ model, waiter, now }, change) {
    this.#claimsOf(model).set(waiter, { entered: now, granted: null });
    change.waiting += 1;
  }

  #decide(entry, { type, waiter, reason }, change) {
    if (type === "refused") this.#leave(entry, { what: "refused", reason }, waiter, change);
    if (type !== "granted") return;
    const entered = this.#claimsOf(entry.model).get(waiter)?.entered ?? null;
    this.#claimsOf(entry.model).set(waiter, { entered, granted: entry.now });
    change.waiting -= 1;
    change.active += 1;
  }

  #leave({ time, model }, how, waiter, change) {
    this.#claimsOf(model).delete(waiter);
    this.outcomes.add({ time, model, ...how });
    change.waiting -= 1;
  }

  #finish({ time, model, waiter, now }, change) {
    const { entered = null, granted = null } = this.#claimsOf(model).get(waiter) ?? {};
    this.#claimsOf(model).delete(waiter);
    const waitS = entered === null || granted === null ? null : granted - entered;
    const runS = granted === null ? null : now - granted;
    this.outcomes.add({ time, model, what: "finished", waitS, runS });
    change.active -= 1;
  }

  #levelsOf(model) {
    if (!this.#levels.has(model)) {
      const levels = new Levels();
      levels.begin(this.#began, this.#isSettled);
      this.#levels.set(model, levels);
    }
    return this.#levels.get(model);
  }

  #claimsOf(model) {
    if (!this.#claims.has(model)) this.#claims.set(model, new Map());
    return this.#claims.get(model);
  }
}

/** The number of the last entry before a status. */
export function seqOf(status) {
  return Number(status.last_event_id.slice(status.last_event_id.lastIndexOf("-") + 1));
}
