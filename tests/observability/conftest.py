"""What follows and writes a journal does so on an event loop."""

from coroutine_tests import pytest_pyfunc_call as pytest_pyfunc_call  # noqa: PLC0414 (a hook for pytest to find)
