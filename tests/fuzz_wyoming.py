"""Wyoming events gone wrong: lines, lengths, data and payloads."""

from fuzz_dice import Dice, blind, chance, dice_for
from fuzz_json import Obj, changed, obj, odd, text_of
from fuzz_shots import Shot

_HEARD = obj(rate=16_000, width=2, channels=1)
_WIDE = obj(rate=8_000, width=1, channels=2)
_VOICE = obj(name="tts", language="en", speaker=None)
_TALKS: tuple[tuple[tuple[str, Obj, bytes], ...], ...] = (
    (("describe", Obj(), b""),),
    (("ping", obj(text="hello"), b""),),
    (("synthesize", obj(text="a text", voice=_VOICE), b""),),
    (
        ("synthesize-start", obj(voice=_VOICE), b""),
        ("synthesize-chunk", obj(text="One. Two. "), b""),
        ("synthesize-stop", Obj(), b""),
    ),
    (
        ("transcribe", obj(name="asr", language="en", transcript_names=["Ada"], transcript_terms=["loom"]), b""),
        ("audio-start", _HEARD, b""),
        ("audio-chunk", _HEARD, bytes(3200)),
        ("audio-chunk", _HEARD, bytes(321)),
        ("audio-stop", Obj(), b""),
    ),
    (("audio-start", _WIDE, b""), ("audio-chunk", _WIDE, bytes(99)), ("audio-stop", Obj(), b"")),
)  # fmt: skip


def wyoming_shot(seed: int) -> Shot:
    """A talk, or several."""
    dice = dice_for("wyoming", seed)
    events = [event for _ in range(dice.choice((1, 1, 2, 3))) for event in dice.choice(_TALKS)]
    for _ in range(dice.choice((0, 0, 1, 2))):
        at = dice.randrange(len(events))
        dice.choice((events.pop, lambda at: events.insert(at, dice.choice(dice.choice(_TALKS)))))(at)
        if not events:
            break
    data = b"".join(_event(kind, content, payload, dice) for kind, content, payload in events)
    if chance(dice, 0.2):
        data = blind(data, dice)
    return Shot(data, stays=chance(dice, 0.85), to_wyoming=True)


def _event(kind: str, content: Obj, payload: bytes, dice: Dice) -> bytes:
    """An event, its data in the line or behind it; odd in one of eight."""
    is_odd = chance(dice, 0.13)
    data = text_of(changed(content, dice) if is_odd and chance(dice, 0.5) else content)
    line, behind = obj(type=kind), b""
    if chance(dice, 0.5):
        line.append(("data_length", len(data)))
        behind = data
    else:
        line.append(("data", content if data == text_of(content) else changed(content, dice)))
    if payload:
        line.append(("payload_length", len(payload)))
    said = text_of(changed(line, dice) if is_odd and chance(dice, 0.5) else line)
    if is_odd and chance(dice, 0.1):
        said = bytes(odd(dice))
    return said.replace(b"\n", b" ") + b"\n" + behind + payload
