"""Coroutine tests here run on a loop of their own."""

from coroutine_tests import pytest_pyfunc_call as pytest_pyfunc_call  # noqa: PLC0414 (a hook for pytest to find)
