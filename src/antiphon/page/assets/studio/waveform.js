/** The picture of a sound, and a slider over its time. It plays nothing, and keeps no samples. */

import { h } from "../base/dom.js";
import { place } from "../base/format.js";
import { Peaks } from "./peaks.js";

/** What a key moves the position by. Units: seconds. */
const STEPS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
/** A sound that is quieter than this is drawn smaller than the picture is high. */
const FULL_HEIGHT_FROM = 0.2;

/**
 * The drawn sound. Use it so: `begin(rate)`, then `extend` as often as there is more; or `show` with what is there at once.
 *
 * Events: `seek`, with a place in seconds as its `detail`, when the reader chose one. Nothing moves by itself: whoever plays
 * sets `position`.
 */
export class Waveform extends HTMLElement {
  #canvas = h("canvas", { "aria-hidden": "true" });
  #peaks = new Peaks();
  #rate = 1;
  #position = 0;
  #isSeekable = true;
  #isDue = false;
  #sizes = new ResizeObserver(() => this.#redrawSoon());
  /** Of a theme that the reader chooses, there is no event. */
  #themes = new MutationObserver(() => this.#redrawSoon());
  #schemes = matchMedia("(prefers-color-scheme: dark)");
  #redrawSoon = () => {
    if (this.#isDue) return;
    this.#isDue = true;
    requestAnimationFrame(() => this.#draw());
  };

  /** @param {string} label What is heard, for those who do not see the picture. */
  constructor(label) {
    super();
    this.setAttribute("role", "slider");
    this.setAttribute("aria-label", label);
    this.append(this.#canvas);
    this.addEventListener("keydown", (event) => this.#step(event));
    this.addEventListener("pointerdown", (event) => this.#drag(event));
    this.addEventListener("pointermove", (event) => event.buttons === 1 && this.#point(event));
    this.#describe();
  }

  connectedCallback() {
    this.#sizes.observe(this.#canvas);
    this.#themes.observe(document.documentElement, { attributes: true, attributeFilter: ["style"] });
    this.#schemes.addEventListener("change", this.#redrawSoon);
  }

  disconnectedCallback() {
    this.#sizes.disconnect();
    this.#themes.disconnect();
    this.#schemes.removeEventListener("change", this.#redrawSoon);
  }

  /** Show no sound, and take one of so many frames a second. */
  begin(rate) {
    this.#peaks = new Peaks();
    this.#rate = rate;
    this.#position = 0;
    this.#changed();
  }

  /** @param {Float32Array[]} channels What comes next, one array a channel, all as long; from -1 to 1. */
  extend(channels) {
    this.#peaks.append(channels);
    this.#changed();
  }

  /** @param {AudioBuffer} buffer The whole sound. */
  show(buffer) {
    this.begin(buffer.sampleRate);
    this.extend(Array.from({ length: buffer.numberOfChannels }, (_, channel) => buffer.getChannelData(channel)));
  }

  /** How long the sound is. Units: seconds. */
  get duration() {
    return this.#peaks.frames / this.#rate;
  }

  /** The furthest that the sound swings, from 0 to 1. */
  get loudest() {
    return this.#peaks.loudest;
  }

  /** Where the sound is. Units: seconds. */
  get position() {
    return this.#position;
  }

  set position(seconds) {
    this.#position = seconds;
    this.#changed();
  }

  /** Whether the reader may choose a place. */
  set isSeekable(isSeekable) {
    this.#isSeekable = isSeekable;
    this.#describe();
  }

  #changed() {
    this.#describe();
    this.#redrawSoon();
  }

  #describe() {
    const isOpen = this.#isSeekable && this.duration > 0;
    const whole = Math.floor(this.#position);
    this.tabIndex = isOpen ? 0 : -1;
    this.#tell("aria-disabled", !isOpen);
    this.#tell("aria-valuemin", 0);
    this.#tell("aria-valuemax", Math.ceil(this.duration));
    this.#tell("aria-valuenow", whole);
    this.#tell("aria-valuetext", `${place(whole)} of ${place(this.duration)}`);
  }

  /** Attributes that stay as they are are not set: some screen readers read them out again. */
  #tell(name, value) {
    if (this.getAttribute(name) !== String(value)) this.setAttribute(name, String(value));
  }

  #step(event) {
    const places = { Home: 0, End: this.duration };
    const target = event.key in STEPS ? this.#position + STEPS[event.key] : places[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.#seek(target);
  }

  #drag(event) {
    if (event.button !== 0) return;
    this.setPointerCapture(event.pointerId);
    this.#point(event);
  }

  #point(event) {
    const { left, width } = this.#canvas.getBoundingClientRect();
    this.#seek((this.duration * (event.clientX - left)) / width);
  }

  #seek(seconds) {
    if (!this.#isSeekable || this.duration === 0) return;
    const detail = Math.min(Math.max(0, seconds), this.duration);
    this.dispatchEvent(new CustomEvent("seek", { detail }));
  }

  #draw() {
    this.#isDue = false;
    const { width, height } = this.#fit();
    const context = this.#canvas.getContext("2d");
    const style = getComputedStyle(this);
    const playhead = this.duration > 0 ? Math.round((width * this.#position) / this.duration) : 0;
    const scale = height / 2 / Math.max(this.#peaks.loudest, FULL_HEIGHT_FROM);
    context.clearRect(0, 0, width, height);
    context.fillStyle = style.accentColor;
    for (let x = 0; x < width; x += 1) {
      if (x === playhead) context.fillStyle = style.color;
      const { low, high } = this.#peaks.column(x, width);
      const top = Math.floor(height / 2 - high * scale);
      context.fillRect(x, top, 1, Math.max(1, Math.ceil((high - low) * scale)));
    }
    context.fillStyle = style.accentColor;
    if (playhead > 0) context.fillRect(playhead - 1, 0, Math.ceil(devicePixelRatio), height);
  }

  /** Give the canvas as many pixels as the screen has in its place. */
  #fit() {
    const width = Math.max(1, Math.round(this.#canvas.clientWidth * devicePixelRatio));
    const height = Math.max(1, Math.round(this.#canvas.clientHeight * devicePixelRatio));
    if (this.#canvas.width !== width) this.#canvas.width = width;
    if (this.#canvas.height !== height) this.#canvas.height = height;
    return { width, height };
  }
}

customElements.define("antiphon-waveform", Waveform);
