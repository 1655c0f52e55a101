/**
 * What the pane asks of the server, from what was chosen in it: one description for the call and for the code that is shown.
 *
 * @typedef {object} Order
 * @property {"transcribe" | "translate" | "align" | "speakers"} task
 * @property {File} file
 * @property {string} model
 * @property {string} language "" lets the model find out.
 * @property {string} prompt
 * @property {string} text What is aligned.
 * @property {string} diarizer The model that tells who speaks, or "".
 * @property {boolean} isStreamed The text as it is heard, without times.
 *
 * @typedef {import("../snippets.js").ShownRequest} ShownRequest
 */

const PATHS = {
  transcribe: "v1/audio/transcriptions",
  translate: "v1/audio/translations",
  align: "v1/audio/alignments",
  speakers: "v1/audio/transcriptions",
};

/** The formats that the server has for the answer to each task, besides its JSON. */
export const SUBTITLES = { transcribe: ["srt", "vtt"], translate: ["srt", "vtt"], align: [], speakers: [] };

/**
 * The transcript, with times.
 *
 * @param {Order} order
 * @param {boolean} tellsWords Whether the model is taken to tell the times of words.
 * @returns {ShownRequest}
 */
export function timedRequest(order, tellsWords) {
  const form = [...common(order), ["response_format", "verbose_json"]];
  if (tellsWords) form.push(["timestamp_granularities[]", "word"]);
  return { path: PATHS[order.task], form };
}

/** The transcript as subtitles: `format` is one of `SUBTITLES`. */
export function subtitleRequest(order, format) {
  return {
    path: PATHS[order.task],
    form: [...common(order), ["response_format", format]],
    saveAs: `transcript.${format}`,
  };
}

/** The text while it is heard. */
export function streamedRequest(order) {
  return { path: PATHS[order.task], form: [...common(order), ["stream", true]] };
}

/** When each word of a text is said. */
export function alignmentRequest({ file, model, language, text }) {
  return {
    path: PATHS.align,
    form: present([
      ["model", model],
      ["file", named(file)],
      ["text", text],
      ["language", language],
    ]),
  };
}

/** Who speaks when. */
export function turnsRequest(file, model) {
  return {
    path: PATHS.speakers,
    form: [
      ["model", model],
      ["file", named(file)],
    ],
  };
}

/** Captions of a recording that is being made. */
export function liveRequest({ model, language, prompt }, sampleRate) {
  const query = { model, sample_rate: sampleRate, sample_format: "s16le", language, prompt };
  return { path: "v1/audio/transcriptions/live", query, live: { file: "recording.raw" } };
}

/**
 * @param {ShownRequest} request
 * @param {File} file What the request names.
 */
export function formOf({ form }, file) {
  const data = new FormData();
  for (const [name, value] of form) data.append(name, typeof value === "object" ? file : String(value));
  return data;
}

function common({ model, file, language, prompt }) {
  return present([
    ["model", model],
    ["file", named(file)],
    ["language", language],
    ["prompt", prompt],
  ]);
}

function named(file) {
  return { file: file.name };
}

function present(form) {
  return form.filter(([, value]) => value !== "");
}
