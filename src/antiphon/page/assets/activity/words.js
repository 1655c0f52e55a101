/** The journal's entries in plain words. It knows every type of docs/events.md, and counts and draws nothing. */

import { duration } from "../base/format.js";

const OPERATIONS = {
  infer: "a request",
  load: "a load",
  unload: "an unload",
  bulk_unload: "an unload of several",
  evict: "an eviction",
};
const REASONS = {
  expired: "its time to wait was over",
  overdue: "what is before it has run for longer than it would wait",
  shutting_down: "the server is stopping",
};
const CAUSES = { room: "to make room", memory: "to free memory", idle: "after being idle" };
const STEPS = {
  load: "load begins",
  publish: "load is done",
  fail: "load failed",
  retire: "out of use",
  destroy: "memory is free",
  reconfigure: "change begins",
  preserve: "kept as it was",
};
const GAPS = {
  too_old: "the server does not keep older entries",
  restarted: "the server was started anew",
  too_slow: "this page was too slow",
};

/** The kinds that entries are chosen by: what they are called, and whether they are shown at first. */
export const KINDS = {
  transitions: { label: "Transitions", isShown: true },
  loads: { label: "Loads", isShown: true },
  evictions: { label: "Evictions", isShown: true },
  refusals: { label: "Refusals", isShown: true },
  faults: { label: "Faults", isShown: true },
  requests: { label: "Requests", isShown: false },
};

const KINDS_OF = {
  transition: ["transitions"],
  open: ["loads"],
  registered: ["loads"],
  loaded: ["loads"],
  load_failed: ["loads", "faults"],
  evicted: ["evictions"],
  died: ["faults"],
  failed: ["faults"],
};
const TAGS = {
  submit: "request",
  release: "done",
  withdraw: "left",
  expire: "time",
  try_exclusive: "request",
  resize: "slots",
  dismiss: "stopping",
  transition: "state",
  open: "new",
  registered: "registered",
  loaded: "loaded",
  load_failed: "load failed",
  evicted: "evicted",
  died: "died",
  failed: "fault",
  gap: "gap",
  dropped: "gap",
  end: "end",
};
const TONES = {
  load_failed: "bad",
  died: "bad",
  failed: "bad",
  evicted: "busy",
  gap: "busy",
  dropped: "busy",
  end: "busy",
};

/** @returns {string[] | null} The kinds that an entry is of; null for one that is of the connection, and always shown. */
export function kindsOf(entry) {
  if (!("seq" in entry)) return null;
  const kinds = KINDS_OF[entry.type] ?? ["requests"];
  return refusals(entry).length > 0 ? [...kinds, "refusals"] : kinds;
}

/** @returns {string[]} The ids of the requests that an entry names. */
export function requestsOf(entry) {
  return [entry, ...(entry.decided ?? [])].map((part) => part.request_id).filter(Boolean);
}

/**
 * What an entry says.
 *
 * @returns {{tag: string, tone: "bad" | "busy" | "", text: string}} `tag` is a word for its type; `tone` says how much it stands out.
 */
export function told(entry) {
  const isRefusal = refusals(entry).length > 0;
  const decided = (entry.decided ?? []).map(decisionText);
  return {
    tag: isRefusal ? "refused" : (TAGS[entry.type] ?? entry.type),
    tone: isRefusal ? "bad" : (TONES[entry.type] ?? ""),
    text: [(TEXTS[entry.type] ?? (() => entry.type))(entry), ...decided].filter(Boolean).join("; "),
  };
}

/** Why a request was refused, in words. */
export function reasonText(reason) {
  return REASONS[reason] ?? reason;
}

const TEXTS = {
  open: ({ slots }) => `its queue is open, with ${counted(slots, "slot")}`,
  submit: (entry) => `${claim(entry)} comes${entry.decided ? "" : " and waits"}`,
  release: (entry) => `${claim(entry)} is done`,
  withdraw: (entry) => `${claim(entry)} leaves the queue, because its client did`,
  expire: ({ decided }) => (decided ? "" : "the queue was looked through, and nobody's time was over"),
  try_exclusive: (entry) => `${claim(entry)} ${entry.waiter === undefined ? "finds it in use" : "has the whole model"}`,
  resize: ({ slots }) => `it has ${counted(slots, "slot")} now`,
  dismiss: ({ decided }) => (decided ? "" : "the server stops; nobody waits here"),
  transition: (entry) => `${entry.before} → ${entry.after}${cause([STEPS[entry.step], ...origin(entry)])}`,
  registered: (entry) => `is registered${cause(origin(entry))}`,
  loaded: (entry) => `is in memory, after ${duration(1000 * entry.load_s)}${cause(origin(entry))}`,
  load_failed: (entry) => `could not be loaded${cause(origin(entry))}`,
  evicted: (entry) => `was taken out of memory${cause([evictionText(entry), ...origin(entry)])}`,
  died: () => "its worker process ended without being told to",
  failed: (entry) => `${entry.what}: ${entry.error}${cause(origin(entry))}`,
  gap: ({ missed, reason }) => `${missedText(missed)}: ${GAPS[reason] ?? reason}`,
  dropped: ({ missed, reason }) => `${missedText(missed)}: ${GAPS[reason] ?? reason}`,
  end: () => "the server is stopping",
};

function decisionText(decision) {
  if (decision.type === "refused") return `${claim(decision)} is refused: ${reasonText(decision.reason)}`;
  const held = decision.slot === undefined || decision.slot === null ? "the whole model" : `slot ${decision.slot}`;
  return `${claim(decision)} has ${held}`;
}

/** A claim by what it is for, and the id of the request that made it. */
function claim({ operation = "infer", request_id: id, waiter }) {
  if (operation === "infer") return `request ${id ?? `number ${waiter}`}`;
  return `${OPERATIONS[operation] ?? operation}${id ? ` (request ${id})` : ""}`;
}

function origin({ operation, request_id: id }) {
  const isManaged = operation && operation !== "infer";
  return [isManaged && operation.replace("_", " "), id && `request ${id}`];
}

function cause(parts) {
  const named = parts.filter(Boolean);
  return named.length > 0 ? `, ${named.join(", ")}` : "";
}

function evictionText({ cause: why, newcomer }) {
  return `${CAUSES[why] ?? why}${newcomer ? ` for ${newcomer}` : ""}`;
}

function missedText(missed) {
  return missed === undefined || missed === null
    ? "entries are missing"
    : `${counted(missed, "entry", "entries")} missing`;
}

function counted(count, one, several = `${one}s`) {
  return `${count} ${count === 1 ? one : several}`;
}

function refusals(entry) {
  return (entry.decided ?? []).filter(({ type }) => type === "refused");
}
