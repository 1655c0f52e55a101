"""Some tests of scale-out are coroutines."""

from coroutine_tests import pytest_pyfunc_call as pytest_pyfunc_call  # noqa: PLC0414 (a hook for pytest to find)
