/**
 * What was heard in a recording: one shape for the answers of a transcription, an alignment and a diarization. It calls no
 * server and draws nothing.
 *
 * @typedef {object} Span A part of the recording, in seconds.
 * @property {number} start
 * @property {number} end
 *
 * @typedef {Span & {text: string}} Said
 * @typedef {Span & {speaker: string}} Turn
 *
 * @typedef {object} Heard
 * @property {string} text All of it; "" for turns alone.
 * @property {Said[]} segments Empty where no times are known.
 * @property {Said[]} words Empty where the model tells no times of words.
 * @property {Turn[]} turns Who speaks when; empty where nobody asked.
 *
 * @typedef {Said & {before: string, speaker: string | null}} Piece A word, or where there is none a segment. `before` is what
 *   stands between it and the one before it in the same paragraph.
 */

/** @returns {Heard} Words without times. */
export function fromText(text) {
  return { text, segments: [], words: [], turns: [] };
}

/** @returns {Heard} Of a `verbose_json`. */
export function fromVerbose(answer) {
  const words = (answer.words ?? []).map(({ word, start, end }) => ({ text: word, start, end }));
  const segments = answer.segments.map(({ text, start, end }) => ({ text: text.trim(), start, end }));
  return { text: answer.text, segments, words, turns: [] };
}

/**
 * @param {{words: {word: string, start: number, end: number}[], duration: number}} answer Of an alignment.
 * @param {string} text What was aligned.
 * @returns {Heard}
 */
export function fromAlignment(answer, text) {
  const words = answer.words.map(({ word, start, end }) => ({ text: word, start, end }));
  return { text, segments: [{ text, start: words[0]?.start ?? 0, end: answer.duration }], words, turns: [] };
}

/** @returns {Turn[]} Of the answer of a diarization model, which counts samples. */
export function turnsOf({ speaker_turns: turns, sample_rate: rate }) {
  return turns.map(({ start_sample: start, end_sample: end, speaker_id: speaker }) => ({
    start: start / rate,
    end: end / rate,
    speaker: speaker ?? "unknown",
  }));
}

/** @returns {string[]} Everybody who has a turn, in the order of their first one. */
export function speakersOf(turns) {
  return [...new Set(turns.map((turn) => turn.speaker))];
}

/**
 * A transcript as it is read: a paragraph for each segment, and another one where somebody else goes on.
 *
 * @param {Heard} heard
 * @returns {Piece[][]} None of the paragraphs is empty.
 */
export function paragraphsOf(heard) {
  const paragraphs = [];
  for (const pieces of piecesBySegment(heard)) {
    for (const [index, piece] of pieces.entries()) {
      const speaker = speakerOf(piece, heard.turns);
      const isFirst = index === 0 || speaker !== paragraphs.at(-1)[0].speaker;
      if (isFirst) paragraphs.push([]);
      paragraphs.at(-1).push({ ...piece, speaker, before: isFirst ? piece.before.trimStart() : piece.before });
    }
  }
  return paragraphs;
}

/**
 * The last of these times that is not after `time`, in O(log n).
 *
 * @param {number[]} starts Ascending, in seconds.
 * @param {number} time
 * @returns {number} Its index; -1 if all of them are later.
 */
export function indexAt(starts, time) {
  let from = 0;
  let to = starts.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (starts[middle] <= time) from = middle + 1;
    else to = middle;
  }
  return from - 1;
}

function piecesBySegment({ segments, words }) {
  if (words.length === 0) return segments.filter(({ text }) => text).map((segment) => [{ ...segment, before: "" }]);
  let next = 0;
  return segments.map((segment, index) => {
    const first = next;
    const isLast = index === segments.length - 1;
    while (next < words.length && (isLast || (words[next].start + words[next].end) / 2 < segment.end)) next += 1;
    return laidOut(segment.text, words.slice(first, next));
  });
}

/** Words with what stands between them in the text: a blank, a line's end, or nothing in Chinese. */
function laidOut(text, words) {
  let at = 0;
  return words.map((word) => {
    const found = text.indexOf(word.text, at);
    const between = found < 0 ? " " : text.slice(at, found);
    const isNext = !/[\p{L}\p{N}]/u.test(between); // else it is the same word further on
    if (found >= 0 && isNext) at = found + word.text.length;
    return { ...word, before: isNext ? between : " " };
  });
}

/**
 * Who says a piece: the turn that it overlaps longest, of equals the earlier one, and in no turn the nearest one. That is the
 * rule of `diarized_json`, which has no times of words; so the two models are asked one by one, and joined here.
 */
function speakerOf(piece, turns) {
  let best = -Infinity;
  let speaker = null;
  for (const turn of turns) {
    const overlap = Math.min(piece.end, turn.end) - Math.max(piece.start, turn.start); // below 0: how far away it is
    if (overlap > best) {
      best = overlap;
      speaker = turn.speaker;
    }
  }
  return speaker;
}
