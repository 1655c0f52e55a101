"""Keys of callers, as they stand in a file or in the environment; who they let in is not known here.

Every ValueError here is the rest of a sentence that begins with the field's name, and none repeats a key.
"""

from collections.abc import Sequence
from pathlib import Path

MAX_FILE_BYTES = 64 * 1024
"""No list of keys is this long; another file that is named by mistake is not read to its end."""


def fits_a_head(text: str) -> bool:
    """Whether a request's head can carry it as one word: visible ASCII characters, one or more."""
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def read_keys(path: Path) -> Sequence[str]:
    """The keys of a file, one a line; blank lines and those that begin with `#` are none.

    Raises ValueError for a file that holds no key at all, as one does that is about to be written: without any key a
    server would ask for none.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ValueError(
            f"wanted a file with one key a line; {str(path)!r} cannot be read: {error.strerror}"
        ) from error
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"wanted a file with one key a line, of at most {MAX_FILE_BYTES} bytes; found {str(path)!r}")
    keys = []
    for number, line in enumerate(data.decode("latin-1").splitlines(), start=1):
        text = line.strip()
        if text and not text.startswith("#"):
            if not fits_a_head(text):
                raise ValueError(
                    f"wanted one key of visible ASCII characters a line; line {number} of {str(path)!r} is none"
                )
            keys.append(text)
    if not keys:
        raise ValueError(f"wanted a file with one key a line; {str(path)!r} holds none")
    return keys


def listed_keys(text: str) -> Sequence[str]:
    """The keys of an environment variable, with commas between them."""
    keys = [key.strip() for key in text.split(",")]
    return [key for key in keys if key]
