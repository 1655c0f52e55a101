"""Which faults are a shortage of the machine's."""

import errno
import os

import pytest

from antiphon.runtime.descriptors import descriptor_limit
from antiphon.runtime.shortages import shortage_of
from antiphon.vocabulary.errors import EngineError


@pytest.mark.parametrize(
    ("number", "missing"),
    [
        (errno.EMFILE, "file descriptors"),
        (errno.ENFILE, "file descriptors"),
        (errno.ENOSPC, "disk space"),
        (errno.EDQUOT, "disk space"),
        (errno.ENOMEM, "memory"),
    ],
)
def test_a_shortage_says_what_is_missing_and_no_path(number, missing):
    shortage = shortage_of(OSError(number, os.strerror(number), "/secret/path"))
    assert shortage is not None
    assert shortage.message == f"the server has run out of {missing}; try again later"


def test_a_shortage_is_found_behind_the_fault_that_it_caused():
    fault = EngineError("the engine failed")
    fault.__cause__ = OSError(errno.ENOSPC, "no space")
    assert shortage_of(fault) is not None


@pytest.mark.parametrize("fault", [OSError("odd"), FileNotFoundError(errno.ENOENT, "no such file"), ValueError("x")])
def test_another_fault_is_none(fault):
    assert shortage_of(fault) is None


def test_there_is_always_a_number_of_descriptors():
    assert descriptor_limit() > 0
