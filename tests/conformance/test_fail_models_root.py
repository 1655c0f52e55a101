"""The cell `fail.models_root`: a folder of packages that cannot be used leaves the old one in place."""

from pathlib import Path

import pytest

from antiphon.packages import Installer
from antiphon.service.models_root import ModelsRoot
from antiphon.vocabulary.errors import InvalidRequest, PackageError
from conformance_evidence import refusal
from conformance_plugin import cell


@cell("fail.models_root")
def test_fail_models_root(fresh_server):
    server = fresh_server()
    old, new, file = (server.process.folder / name for name in ("old root", "new root", "no folder"))
    file.write_text("a file")

    def replace(path):
        return server.client.start("POST", "/v1/ui/models_root", json={"path": str(path)})

    def told():
        return server.client.call("GET", "/v1/ui/models_root").json()

    assert replace(old).ok() == told() == {"path": str(old)}
    for wrong in (file, file / "below", Path("relative")):
        assert refusal(replace(wrong)) == (400, None, "path")
        assert told() == {"path": str(old)}
    assert replace(new).ok() == told() == {"path": str(new)}


@cell("fail.models_root", "unit")
@pytest.mark.parametrize("fault", [MemoryError, OSError])
def test_fail_models_root_while_its_installer_is_made(tmp_path, fault):
    faults = {"new": fault}

    def make(path):
        if path.name in faults:
            raise faults[path.name]
        return Installer(path)

    root = ModelsRoot(tmp_path / "old", make)
    installer = root.installer

    with pytest.raises((fault, InvalidRequest)):
        root.replace(str(tmp_path / "new"))

    assert root.installer is installer
    assert root.path == installer.models_root == tmp_path / "old"
    faults.clear()
    root.replace(str(tmp_path / "new"))
    assert root.path == root.installer.models_root == tmp_path / "new"


class Unreadable(Installer):
    """An installer of a folder that cannot be listed."""

    def installed(self):
        raise PackageError("the packages cannot be listed")


@cell("fail.models_root", "unit")
def test_fail_models_root_that_cannot_be_listed(tmp_path):
    root = ModelsRoot(tmp_path / "old", lambda path: (Unreadable if path.name == "new" else Installer)(path))
    installer = root.installer

    with pytest.raises(InvalidRequest):
        root.replace(str(tmp_path / "new"))

    assert root.installer is installer
    assert root.path == installer.models_root == tmp_path / "old"
