"""Odd JSON: values that no field wants, and objects with members changed, doubled, gone. It knows no route.

An object is an `Obj`, a list of its members, since what is sent may have a name twice; `Raw` is JSON text as it stands.
"""

import json
from typing import TypeAlias

from fuzz_dice import Dice, chance

_MOST_BYTES = 1024 * 1024
"""No value is repeated beyond this."""


class Raw(bytes):
    """Bytes that go into the text as they are."""


class Obj(list[tuple[str | Raw, object]]):
    """An object: names and values in their order."""


Json: TypeAlias = object
"""None, a truth value, a number, a str, a Raw, an Obj, or a list of such."""

_NUMBERS = (
    b"-0", b"0", b"-1", b"1", b"0.0", b"1e400", b"-1e400", b"1e-400", b"1E5", b"01", b"+1", b".5", b"1.", b"0x10",
    b"NaN", b"Infinity", b"-Infinity", b"9007199254740993", b"9223372036854775807", b"9223372036854775808",
    b"1" * 400, b"1" * 5000, b"-" + b"9" * 30, b"1." + b"1" * 400, b"4.0000000001", b"0.25", b"2147483648", b"1e308",
    b"\xd9\xa3",
)  # fmt: skip
_STRINGS = (
    b'""', b'" "', b'"\\u0000"', b'"a\\u0000b"', b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\ud83d\\ude00"', b'"\\ud83d"',
    b'"\xff"', b'"\xed\xa0\x80"', b'"\xc0\xaf"', b'"\xf4\x90\x80\x80"', b'"\\x"', b'"\\u12"', b'"\n"', b'"\t"', b'"',
    b"'a'", b'"\xe2\x80\xae\xe2\x80\x8b"', b'"\xef\xbb\xbf"', b'"../../../etc/passwd"', b'"/etc/passwd"',
    b'"file:///etc/passwd"', b'"%s%n%d"', b'"{0.__class__}"', b'"$(reboot)"', b'"' + b"a" * 10_000 + b'"',
    b'"' + b"a" * 120_000 + b'"', b'"' + b"\xf0\x9f\x98\x80" * 3000 + b'"', b'"e' + b"\xcc\x81" * 5000 + b'"',
    b'"' + b"a." * 20_000 + b'"', b'"1"', b'"true"', b'"null"', b'"auto"', b'"en"', b'"EN-us"', b'"english"',
    b'"wav"', b'"MP3"', b'"sse"',
)  # fmt: skip
_SHAPES = (
    b"null", b"true", b"false", b"[]", b"{}", b"[null]", b"[[]]", b'{"a":1}', b'{"":{}}', b'{"path":"x"}',
    b'{"data":""}', b"[" * 200 + b"]" * 200, b"[" * 50_000 + b"]" * 50_000, b'{"a":' * 200 + b"1" + b"}" * 200,
    b'{"a":' * 20_000, b"[" * 20_000, b"[" + b"0," * 10_000 + b"0]", b"{" + b'"a":1,' * 3000 + b'"b":2}', b"[1,]",
    b'{"a"}', b"{,}", b"tru", b"", b"/**/1",
)  # fmt: skip
_NAMES = (
    Raw(b'""'), Raw(b'"\\u0000"'), Raw(b'"\\ud800"'), Raw(b'"\xff"'), Raw(b"1"), Raw(b'"__proto__"'),
    Raw(b'"__class__"'), Raw(b'"' + b"n" * 10_000 + b'"'), Raw(b'"model_config"'), Raw(b'"self"'), Raw(b"null"),
    Raw(b'"a.b"'), Raw(b'"0"'),
)  # fmt: skip


def obj(**members: Json) -> Obj:
    """An object of these members."""
    return Obj(members.items())


def text_of(value: Json) -> bytes:
    """The value as JSON text, or as what it has instead."""
    match value:
        case Raw():
            return bytes(value)
        case Obj():
            members = (b":".join((_name(name), text_of(it))) for name, it in value)
            return b"{" + b",".join(members) + b"}"
        case list():
            return b"[" + b",".join(map(text_of, value)) + b"]"
        case _:
            return json.dumps(value).encode()


def odd(dice: Dice) -> Raw:
    """A value that hardly any field wants."""
    return Raw(dice.choice(dice.choice((_NUMBERS, _STRINGS, _SHAPES))))


def copied(value: Json) -> Json:
    """The value again, to be changed."""
    match value:
        case Obj():
            return Obj((name, copied(it)) for name, it in value)
        case list():
            return [copied(it) for it in value]
        case _:
            return value


def changed(value: Json, dice: Dice) -> Json:
    """The value with one or a few changes somewhere inside of it, or another one altogether."""
    value = copied(value)
    if chance(dice, 0.03):
        return odd(dice)
    for _ in range(dice.choice((1, 1, 1, 2, 3, 6))):
        if not (found := _objects(value)):
            return odd(dice)
        _change(dice.choice(found), dice)
    return value


def _change(found: Obj, dice: Dice) -> None:
    at = dice.randrange(len(found)) if found else 0
    match dice.randrange(10) if found else 9:
        case 0:
            del found[at]
        case 1:
            found.append((found[at][0], odd(dice)))
        case 2:
            found[at] = (dice.choice(_NAMES), found[at][1])
        case 3:
            count = dice.choice((0, 1, 2, 300))
            found[at] = (found[at][0], [found[at][1]] * min(count, _MOST_BYTES // (len(text_of(found[at][1])) + 1)))
        case 4:
            found[at] = (found[at][0], Obj([(dice.choice(_NAMES), found[at][1])]))
        case 5:
            dice.shuffle(found)
        case 6 | 7 | 8:
            found[at] = (found[at][0], odd(dice))
        case _:
            found.append((dice.choice(_NAMES), odd(dice)))


def _objects(value: Json) -> list[Obj]:
    match value:
        case Obj():
            return [value, *(it for _, inner in value for it in _objects(inner))]
        case Raw():
            return []
        case list():
            return [it for inner in value for it in _objects(inner)]
        case _:
            return []


def _name(name: str | Raw) -> bytes:
    return bytes(name) if isinstance(name, Raw) else json.dumps(name).encode()
