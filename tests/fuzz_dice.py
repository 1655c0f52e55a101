"""What every fuzzer does with chance: one seed names one input, and blind changes of bytes. It knows no format."""

import random
from collections.abc import Callable, Sequence

Dice = random.Random

EXTREMES = (0, 1, 2, 3, 7, 8, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000)
"""Numbers at which something changes, for a field of any width; its own limits come on top."""


def dice_for(target: str, seed: int) -> Dice:
    """The chance of one input: equal everywhere and always."""
    return random.Random(f"{target} {seed}")


def chance(dice: Dice, share: float) -> bool:
    """Whether it happens, which it does in this share of all cases."""
    return dice.random() < share


def extreme(dice: Dice, size_bytes: int, near: int = 0) -> int:
    """A number that a field of so many bytes can hold: at a limit, or next to `near`."""
    top = 1 << 8 * size_bytes
    limits = (*EXTREMES, top - 1, top - 2, top // 2, top // 2 - 1, near - 1, near + 1, 2 * near, near // 2)
    return dice.choice(limits) % top


def blind(data: bytes, dice: Dice) -> bytes:
    """Some bytes changed, added, removed, repeated or zeroed, more often near the start; or all from one on cut off."""
    body = bytearray(data)
    for _ in range(dice.choice((1, 1, 1, 2, 4, 16))):
        if not body:
            break
        at = dice.randrange(min(len(body), dice.choice((64, 256, 1024, 1 << 20))))
        length = dice.randrange(1, 64)
        match dice.randrange(9):
            case 0 | 1:
                body[at] = dice.randrange(256)
            case 2:
                body[at] ^= 1 << dice.randrange(8)
            case 3:
                size = dice.choice((1, 2, 4, 8))
                body[at : at + size] = extreme(dice, size).to_bytes(size, dice.choice(("little", "big")))
            case 4:
                del body[at : at + length]
            case 5:
                body[at:at] = dice.randbytes(length)
            case 6:
                body[at:at] = body[at : at + length] * dice.choice((1, 2, 50))
            case 7:
                body[at : at + length] = bytes(length)
            case _:
                del body[at + 1 :]
    return bytes(body)


def some(dice: Dice, changes: Sequence[Callable[[Dice], None]], most: int = 4) -> None:
    """Make one to `most` of these changes, mostly few."""
    for _ in range(min(dice.choice((1, 1, 2, 3, most)), most)):
        dice.choice(changes)(dice)
