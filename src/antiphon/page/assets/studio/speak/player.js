/** Plays a recording, also one that still grows. It shows nothing. */

/** How far ahead of what is heard samples are handed over; a page in the background wakes up once a second. Seconds. */
const AHEAD_S = 4;
const PIECE_S = 1;
/** What a piece that comes too late, or first, is put off by, so that its beginning is not lost. Seconds. */
const LEAD_S = 0.05;
const TICK_MS = 50;

/** The one that is heard: two at once could not be told apart. */
let heard = null;

/**
 * What plays one recording. Events: `change` when it begins or ends to play, `time` while it plays.
 *
 * Where a recording still grows and there is nothing to play at the moment, it waits for what comes.
 */
export class Player extends EventTarget {
  #recording;
  /** Runs at the rate of the recording: pieces that follow each other then meet without a seam. Null while silent. */
  #context = null;
  #output = null;
  /** Where on the context's clock the recording's beginning would be. Seconds. */
  #origin = 0;
  /** The first frame that was not handed over yet. */
  #next = 0;
  /** Where it stands while silent. Seconds. */
  #rest = 0;
  /** Counts the beginnings: a piece that was read for an earlier one is not played. */
  #turn = 0;

  /** @param {import("../recording.js").Recording} recording */
  constructor(recording) {
    super();
    this.#recording = recording;
  }

  get isPlaying() {
    return this.#context !== null;
  }

  /** Units: seconds. */
  get position() {
    if (!this.isPlaying) return this.#rest;
    const reached = this.#next / this.#recording.rate;
    return Math.max(this.#rest, Math.min(this.#context.currentTime - this.#origin, reached));
  }

  /** Play from where it stands; from the beginning if that is the end. Another one that is heard falls silent. */
  play() {
    if (this.isPlaying) return;
    heard?.pause();
    heard = this;
    this.#context = new AudioContext({ sampleRate: this.#recording.rate, latencyHint: "playback" });
    this.#context.resume().catch(() => {}); // some browsers begin asleep; one that is closed meanwhile says so here
    this.#playFrom(this.#isAtEnd(this.#rest) ? 0 : this.#rest);
    this.dispatchEvent(new Event("change"));
  }

  pause() {
    if (!this.isPlaying) return;
    this.#rest = this.position;
    this.#turn += 1;
    this.#context.close();
    this.#context = null;
    heard = null;
    this.dispatchEvent(new Event("change"));
  }

  /** @param {number} seconds */
  seek(seconds) {
    if (this.isPlaying) this.#playFrom(seconds);
    else this.#rest = seconds;
    this.dispatchEvent(new Event("time"));
  }

  #playFrom(seconds) {
    this.#output?.disconnect(); // what was handed over of another place is not heard
    this.#output = this.#context.createGain();
    this.#output.connect(this.#context.destination);
    this.#rest = seconds;
    this.#next = Math.round(seconds * this.#recording.rate);
    this.#origin = this.#context.currentTime + LEAD_S - seconds;
    this.#turn += 1;
    this.#run(this.#turn);
  }

  async #run(turn) {
    while (turn === this.#turn) {
      await this.#handOver(turn);
      if (turn !== this.#turn) return;
      this.dispatchEvent(new Event("time"));
      if (this.#isAtEnd(this.#context.currentTime - this.#origin)) this.pause();
      await new Promise((resolve) => setTimeout(resolve, TICK_MS));
    }
  }

  async #handOver(turn) {
    const { rate } = this.#recording;
    while (this.#next < this.#recording.frames) {
      if (this.#origin + this.#next / rate > this.#context.currentTime + AHEAD_S) return;
      const count = Math.min(PIECE_S * rate, this.#recording.frames - this.#next);
      const channels = await this.#recording.read(this.#next, count);
      if (turn !== this.#turn) return;
      this.#start(channels);
      this.#next += count;
    }
  }

  #start(channels) {
    const { rate } = this.#recording;
    const buffer = this.#context.createBuffer(channels.length, channels[0].length, rate);
    channels.forEach((samples, channel) => {
      buffer.copyToChannel(samples, channel);
    });
    const source = new AudioBufferSourceNode(this.#context, { buffer });
    source.connect(this.#output);
    const isLate = this.#origin + this.#next / rate < this.#context.currentTime;
    if (isLate) this.#origin = this.#context.currentTime + LEAD_S - this.#next / rate;
    source.start(this.#origin + this.#next / rate);
  }

  #isAtEnd(seconds) {
    return this.#recording.isFinished && seconds >= this.#recording.duration;
  }
}
