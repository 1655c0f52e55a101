"""The process of one conversion at install: `python -m antiphon.worker.conversion FAMILY FOLDER`.

It ends with status 0, or says why not in the last line of stderr.
"""

import sys
from pathlib import Path

from antiphon.ports.adapter import ConvertingAdapter
from antiphon.runtime.discovery import AdapterFinder
from antiphon.vocabulary.errors import AntiphonError


def main(family: str, folder: Path) -> None:
    """Have the family's adapter convert what is in the folder."""
    try:
        adapter = AdapterFinder().find(family)
        if not isinstance(adapter, ConvertingAdapter):
            raise SystemExit("it converts nothing")
        adapter.convert(folder)
    except AntiphonError as error:
        raise SystemExit(error.message) from error


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
