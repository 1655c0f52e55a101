/** Has the server hear a recording, as an order says. It knows the answers' shapes, and shows nothing. */

import { ApiError, answerEvents, call, callJson } from "../../base/api.js";
import { fromAlignment, fromText, fromVerbose, turnsOf } from "./heard.js";
import { alignmentRequest, formOf, streamedRequest, subtitleRequest, timedRequest, turnsRequest } from "./requests.js";

/**
 * How far a run is: what it does, and of a stream the text until now and its place in the recording, in seconds.
 *
 * @typedef {{step: string, text?: string, until?: number, duration?: number}} Progress
 *
 * @typedef {object} Result
 * @property {import("./heard.js").Heard} heard
 * @property {Record<string, unknown>} answer The server's own, for who wants it as JSON.
 * @property {import("./requests.js").ShownRequest[]} requests What was asked.
 * @property {Error} [error] Why it is not known who speaks, though that was asked.
 */

/** The models that were found to tell no times of words: the public list of models does not say it. */
const wordless = new Set();

/**
 * @param {import("./requests.js").Order} order
 * @param {AbortSignal} signal Ends the run, and frees its slot.
 * @param {(progress: Progress) => void} tell
 * @returns {Promise<Result>}
 * @throws {ApiError} What the server says; an `AbortError` where the signal came first.
 */
export async function listen(order, signal, tell) {
  tell({ step: `${STEPS[order.task]} with ${order.model}…` });
  const result = await RUNS[order.task](order, signal, tell);
  if (!order.diarizer || order.task === "speakers" || order.task === "align") return result;
  tell({ step: `Telling speakers apart with ${order.diarizer}…` });
  try {
    return joined(result, await tellApart(order.file, order.diarizer, signal));
  } catch (error) {
    return { ...result, error }; // what was heard is not lost with it
  }
}

/**
 * The transcript as the server writes subtitles. It is another run: subtitles are made of segments by rules that are the
 * server's alone, and equal requests have equal answers.
 *
 * @returns {Promise<string>}
 */
export async function subtitles(order, format, signal) {
  const request = subtitleRequest(order, format);
  return (await call(request.path, { form: formOf(request, order.file), signal })).text();
}

const STEPS = {
  transcribe: "Transcribing",
  translate: "Translating",
  align: "Aligning",
  speakers: "Telling speakers apart",
};

const RUNS = {
  transcribe: (order, signal, tell) => (order.isStreamed ? stream(order, signal, tell) : transcribe(order, signal)),
  translate: (order, signal, tell) => (order.isStreamed ? stream(order, signal, tell) : transcribe(order, signal)),
  align,
  speakers: ({ file, model }, signal) => tellApart(file, model, signal),
};

function joined(said, who) {
  const { speaker_turns, sample_rate } = who.answer;
  return {
    heard: { ...said.heard, turns: who.heard.turns },
    answer: { ...said.answer, speaker_turns, sample_rate },
    requests: [...said.requests, ...who.requests],
  };
}

async function transcribe(order, signal) {
  const tellsWords = order.task === "transcribe" && !wordless.has(order.model);
  const request = timedRequest(order, tellsWords);
  try {
    const answer = await answerTo(request, order.file, signal);
    return { heard: fromVerbose(answer), answer, requests: [request] };
  } catch (error) {
    if (!(tellsWords && error instanceof ApiError && /^timestamp_granularities/.test(error.param ?? ""))) throw error;
    wordless.add(order.model);
    return transcribe(order, signal);
  }
}

async function stream(order, signal, tell) {
  const request = streamedRequest(order);
  const response = await call(request.path, { form: formOf(request, order.file), signal });
  let text = "";
  let done = null;
  for await (const event of answerEvents(response)) {
    if (event.type === "transcript.text.done") done = event;
    if (event.type !== "transcript.text.delta") continue;
    text += event.delta;
    tell({ step: `${STEPS[order.task]} with ${order.model}…`, text, until: event.until, duration: event.duration });
  }
  return { heard: fromText(done?.text ?? text), answer: done ?? { text }, requests: [request] };
}

async function align(order, signal) {
  const request = alignmentRequest(order);
  const answer = await answerTo(request, order.file, signal);
  return { heard: fromAlignment(answer, order.text), answer, requests: [request] };
}

async function tellApart(file, model, signal) {
  const request = turnsRequest(file, model);
  const answer = await answerTo(request, file, signal);
  return { heard: { ...fromText(answer.text ?? ""), turns: turnsOf(answer) }, answer, requests: [request] };
}

function answerTo(request, file, signal) {
  return callJson(request.path, { form: formOf(request, file), signal });
}
