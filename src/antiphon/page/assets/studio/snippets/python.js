/**
 * A request as a Python program: with OpenAI's client where its API has the route, else with httpx, or websockets for live
 * audio. It knows what OpenAI's methods take, and nothing of what is asked.
 */

import { address } from "../../base/api.js";
import { currentKey } from "../../base/keys.js";

/** By path: the method, what it takes by name (all else is `extra_body`), and what it wants although we do not. */
const OPENAI = {
  "v1/audio/speech": {
    method: "audio.speech.with_streaming_response.create",
    takes: ["model", "input", "voice", "response_format", "speed", "stream_format"],
    wants: { voice: "" },
  },
  "v1/audio/transcriptions": {
    method: "audio.transcriptions.create",
    takes: [
      ...["file", "model", "language", "prompt", "response_format", "temperature", "timestamp_granularities", "stream"],
      ...["chunking_strategy", "include"],
    ],
    wants: {},
  },
  "v1/audio/translations": {
    method: "audio.translations.create",
    takes: ["file", "model", "prompt", "response_format", "temperature"],
    wants: {},
  },
};
const TEXT_FORMATS = ["text", "srt", "vtt"]; // OpenAI's client answers a str for these

/** Python that stands for itself among the values. */
class Code {
  constructor(text) {
    this.text = text;
  }
}

/**
 * @param {import("../snippets.js").ShownRequest} request
 * @returns {string} A program. It ends with what the server says of an error.
 */
export function asPython(request) {
  if (request.live) return withWebsockets(request);
  const known = OPENAI[request.path];
  return known && !request.query ? withOpenai(request, known) : withHttpx(request);
}

function withOpenai(request, { method, takes, wants }) {
  const said = Object.entries(request.json ?? namedOnce(request.form)).filter(([, value]) => value !== undefined);
  const fields = { ...wants, ...Object.fromEntries(said) };
  const given = Object.entries(fields);
  const rest = given.filter(([name]) => !takes.includes(name));
  const named = given.filter(([name]) => takes.includes(name));
  if (rest.length > 0) named.push(["extra_body", Object.fromEntries(rest)]);
  const call = `client.${method}(\n${keywords(named)})`;
  const key = currentKey() ? KEY : literal("none is needed");
  const client = `client = OpenAI(base_url=${literal(address("v1").href)}, api_key=${key})`;
  return program("from openai import OpenAI", client, openaiAnswer(request, fields, call));
}

function openaiAnswer({ path, saveAs }, fields, call) {
  if (path === "v1/audio/speech")
    return `with ${call} as answer:\n    answer.stream_to_file(${literal(saveAs ?? "speech")})`;
  if (fields.stream) return `for event in ${call}:\n    print(event.to_json(indent=None), flush=True)`;
  const text = TEXT_FORMATS.includes(fields.response_format) ? "answer" : "answer.to_json()";
  return `answer = ${call}\n${told(saveAs, text)}`;
}

function withHttpx(request) {
  const { path, query, json, form, saveAs } = request;
  const named = [
    ...headers("headers"),
    ...(json ? [["json", JSON.parse(JSON.stringify(json))]] : []),
    ...(form ? formKeywords(form) : []),
  ];
  const url = `    ${literal(address(path, query).href)},\n`;
  const call = `answer = httpx.${json || form ? "post" : "get"}(\n${url}${keywords([...named, ["timeout", null]])})`;
  const check = "if answer.is_error:\n    raise SystemExit(answer.text)";
  const save = saveAs && `Path(${literal(saveAs)}).write_bytes(answer.content)`;
  return program("import httpx", `${call}\n${check}`, save ?? "print(answer.text)");
}

function formKeywords(form) {
  const texts = form.filter(([, value]) => value?.file === undefined);
  const files = form.filter(([, value]) => value?.file !== undefined);
  const data = {};
  for (const [name, value] of texts) data[name] = name in data ? [data[name], value].flat() : value;
  const parts = files.map(([name, { file }]) => {
    return new Code(`(${literal(name)}, (${literal(file)}, Path(${literal(file)}).read_bytes()))`);
  });
  return [
    ["data", data],
    ["files", parts],
  ];
}

function withWebsockets({ path, query, live }) {
  const url = address(path, query);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const connect = `connect(\n    ${literal(url.href)},\n${keywords([...headers("additional_headers"), ["max_size", null]])})`;
  const send = [
    "def send(socket):",
    `    with open(${literal(live.file)}, "rb") as audio:`,
    "        while block := audio.read(8192):",
    "            socket.send(block)",
    '    socket.send(\'{"type": "end"}\')',
  ].join("\n");
  const listen = [
    `with ${connect} as socket:`,
    "    Thread(target=send, args=(socket,), daemon=True).start()",
    "    for event in socket:",
    "        print(event, flush=True)",
  ].join("\n");
  return program("from websockets.sync.client import connect", send, listen);
}

const KEY = 'os.environ["ANTIPHON_API_KEY"]';

function headers(keyword) {
  return currentKey() ? [[keyword, { Authorization: new Code(`"Bearer " + ${KEY}`) }]] : [];
}

function told(saveAs, text) {
  return saveAs ? `Path(${literal(saveAs)}).write_text(${text}, encoding="utf-8")` : `print(${text})`;
}

/** The fields of a form as keywords: `timestamp_granularities[]`, twice, is a list of two. */
function namedOnce(form) {
  const fields = {};
  for (const [name, value] of form) {
    const plain = value?.file === undefined ? value : new Code(`Path(${literal(value.file)})`);
    if (name.endsWith("[]")) fields[name.slice(0, -2)] = [...(fields[name.slice(0, -2)] ?? []), plain];
    else fields[name] = plain;
  }
  return fields;
}

/** The parts below the imports that they need. */
function program(library, ...parts) {
  const body = parts.join("\n\n");
  const standard = [
    body.includes(KEY) && "import os",
    body.includes("Path(") && "from pathlib import Path",
    body.includes("Thread(") && "from threading import Thread",
  ].filter(Boolean);
  return [...standard, ...(standard.length > 0 ? [""] : []), library, "", body, ""].join("\n");
}

function keywords(pairs) {
  return pairs.map(([name, value]) => `    ${name}=${literal(value, "    ")},\n`).join("");
}

/** A value of JSON in Python. What JSON escapes in a text, Python does, too. */
function literal(value, indent = "") {
  if (value instanceof Code) return value.text;
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}    `;
  const entries = Array.isArray(value)
    ? value.map((item) => literal(item, inner))
    : Object.entries(value).map(([name, item]) => `${literal(name)}: ${literal(item, inner)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const short = `${open}${entries.join(", ")}${close}`;
  if (short.length <= 80 && !short.includes("\n")) return short;
  return `${open}\n${entries.map((entry) => `${inner}${entry},\n`).join("")}${indent}${close}`;
}
