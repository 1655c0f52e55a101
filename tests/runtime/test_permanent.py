"""Imports that stay: no collection looks through them, and collections go on afterwards."""

import gc

import pytest

from antiphon.runtime.permanent import permanent_imports


@pytest.fixture(autouse=True)
def _thawed():
    yield
    gc.unfreeze()


def test_nothing_is_collected_while_it_is_imported():
    with permanent_imports():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_imported_is_not_looked_through_again():
    with permanent_imports():
        kept = [[]]
    assert not any(it is kept for it in gc.get_objects())
    assert gc.get_freeze_count() > 0


def test_a_failed_import_leaves_collections_on():
    with pytest.raises(ImportError), permanent_imports():
        raise ImportError
    assert gc.isenabled()
