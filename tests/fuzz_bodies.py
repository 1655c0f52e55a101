"""JSON bodies of every route that takes one, changed. Nothing in them asks for a folder to be made or a download."""

import base64

import audio_assets
from fuzz_dice import Dice, blind, chance, dice_for
from fuzz_json import Obj, changed, copied, obj, odd, text_of
from fuzz_shots import Shot, post

_JSON = b"application/json"
_SOUND = base64.b64encode(audio_assets.wav_bytes(audio_assets.tone(440, 0.05))).decode()
_OPTIONAL = Obj([("voice", None), ("language", "en"), ("seed", 7), ("options", Obj()), ("busy_timeout_ms", 60_000)])
_SPEECH = obj(model="tts", input="a text", response_format="wav")
_HEARD = obj(model="asr", audio=obj(data=_SOUND), prompt="a prompt", timestamp_granularities=["word"])
_TASK = obj(text="a text", audio=_SOUND, language="en", voice=None, seed=7, options=Obj())

_INFERENCE = (
    (b"/v1/audio/speech", _SPEECH),
    (b"/v1/audio/speech", Obj([*_SPEECH, ("stream_format", "sse")])),
    (b"/v1/audio/speech", Obj([*_SPEECH[:2], ("response_format", "json"), *_OPTIONAL])),
    (b"/v1/audio/speech", Obj([*_SPEECH[:2], ("response_format", "mp3")])),
    (b"/v1/audio/transcriptions", Obj([*_HEARD, ("response_format", "verbose_json")])),
    (b"/v1/audio/transcriptions", Obj([*_HEARD, ("stream", True), *_OPTIONAL])),
    (b"/v1/audio/transcriptions", obj(model="diar", audio=obj(path="sounds/clip.wav"))),
    (b"/v1/tasks/run", obj(model="tts", request=obj(text="a text", options=Obj()))),
    (b"/v1/tasks/run", obj(model="align", request=_TASK)),
    (b"/v1/tasks/stream", obj(model="asr", request=_TASK, busy_timeout_ms=60_000)),
    (b"/v1/tasks/batch", obj(model="tts", requests=[obj(text="one"), obj(text="two", seed=1)])),
    (b"/v1/tasks/batch", obj(model="vad", requests=[_TASK, _TASK])),
)
_SCRATCH = obj(
    id="scratch",
    family="controlled",
    path="scratch",
    task="tts",
    mode="offline",
    slots=2,
    isolation="thread",
    lazy=False,
    pinned=False,
    aliases=["another name"],
    busy_timeout_ms=60_000,
    threads=1,
    load_options=Obj(),
    session_options=obj(capacity=3),
    live_ingest=obj(idle_timeout_ms=1000),
    strategy="replace",
    dry_run=False,
)
_DRY = obj(id="scratch", dry_run=True)
_MANAGEMENT = (
    (b"/v1/models/load", _SCRATCH),
    (b"/v1/models/load", _SCRATCH),
    (b"/v1/models/load", Obj([*_SCRATCH[:-2], ("strategy", "side_by_side"), ("dry_run", True)])),
    (b"/v1/models/load", obj(id="scratch")),
    (b"/v1/models/unload", _DRY),
    (b"/v1/models/unload", obj(id="scratch")),
    (b"/v1/tasks/unload_models", obj(model_ids=["scratch", "nobody"], dry_run=False)),
    (b"/v1/tasks/unload_all_models", obj(dry_run=True)),
    (b"/v1/ui/packages/install", obj(id="nothing", dry_run=False)),
    (b"/v1/ui/packages/stop", obj(id="nothing", dry_run=False)),
    (b"/v1/ui/packages/remove", obj(id="nothing", dry_run=False)),
)
_ROOT = (b"/v1/ui/models_root", obj(path="not/absolute", dry_run=True))
_TYPES = (
    _JSON,
    _JSON,
    _JSON,
    b"application/vnd.api+json",
    b"APPLICATION/JSON; charset=utf-16",
    b"text/plain",
    b"",
    b"\xff",
    b"multipart/form-data",
)


def json_shot(seed: int) -> Shot:
    """A body for an inference."""
    return _shot(_INFERENCE, dice_for("json", seed))


def management_shot(seed: int) -> Shot:
    """A body for a change of models."""
    dice = dice_for("management", seed)
    if chance(dice, 0.05):
        target, body = _ROOT  # no blind changes: they could name a folder, and it would be made
        return post(target, _JSON, text_of(changed(body, dice)))
    return _shot(_MANAGEMENT, dice)


def _shot(bodies: tuple[tuple[bytes, Obj], ...], dice: Dice) -> Shot:
    target, body = dice.choice(bodies)
    sent = text_of(changed(body, dice) if chance(dice, 0.93) else copied(body))
    match dice.randrange(20):
        case 0 | 1 | 2:
            sent = blind(sent, dice)
        case 3:
            sent = sent[: dice.randrange(len(sent) + 1)]
        case 4:
            sent += dice.choice((b"", b" ", b"\0", b"{}", b"]", sent, b"\xff", b" " * 100_000))
        case 5:
            sent = dice.choice((b"\xef\xbb\xbf", b"\xff\xfe", b" \t\r\n", b"\0")) + sent
        case 6:
            sent = sent.decode("latin-1").encode(dice.choice(("utf-16", "utf-32", "utf-16-be")))
        case 7:
            sent = bytes(odd(dice))
        case _:
            pass
    kind = dice.choice(_TYPES) if chance(dice, 0.1) else _JSON
    shot = post(target + _query(dice), kind, sent)
    if chance(dice, 0.03):
        return Shot(shot.data[: -dice.randrange(1, len(sent) + 2)], stays=False)
    return shot


def _query(dice: Dice) -> bytes:
    queries = (
        b"busy_timeout_ms=x",
        b"busy_timeout_ms=" + b"9" * 30,
        b"run_timeout_ms=%00",
        b"%ff",
        b"&&&=",
        b"busy_timeout_ms=60000",
    )
    return b"?" + dice.choice(queries) if chance(dice, 0.1) else b""
