"""Where model packages live, and replacing that folder while the server runs."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from antiphon.packages import Installer
from antiphon.vocabulary.errors import InvalidRequest, PackageError


class ModelsRoot:
    """The folder and its installer, which always belong together (fail.models_root)."""

    def __init__(self, root: Path, make_installer: Callable[[Path], Installer] = Installer) -> None:
        self._make_installer = make_installer
        self._installer = make_installer(root)

    @property
    def path(self) -> Path:
        """The folder, absolute."""
        return self._installer.models_root

    @property
    def installer(self) -> Installer:
        """The installer of that folder."""
        return self._installer

    def replace(self, path: str) -> None:
        """Use another folder. Its installer is made first: where that fails, both stay as they were.

        Raises InvalidRequest for a path that is no folder that can be written.
        """
        self._installer = self._staged(path)

    def foresee(self, path: str) -> Path:
        """Tell which folder `replace` would use, and raise what it would; folders made to find out are gone again."""
        absent = [folder for folder in (Path(path), *Path(path).parents) if _is_absent(folder)]
        try:
            return self._staged(path).models_root
        finally:
            for folder in absent:
                with suppress(OSError):  # it was not made, or somebody uses it already
                    folder.rmdir()

    def _staged(self, path: str) -> Installer:
        wanted = Path(path)
        if not wanted.is_absolute():
            raise InvalidRequest("path must be absolute", param="path")
        try:
            wanted.mkdir(parents=True, exist_ok=True)
            staged = self._make_installer(wanted)
            staged.installed()
        except (OSError, ValueError, PackageError) as fault:
            raise InvalidRequest("path must be a folder that the server can read and write", param="path") from fault
        return staged


def _is_absent(folder: Path) -> bool:
    try:
        return not folder.exists()
    except OSError:  # it cannot be told, so it cannot be made either
        return False
