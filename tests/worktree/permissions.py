"""Doing something under the permissions that stop everybody but root."""

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_PR_CAPBSET_DROP = 24
_VERSION_3 = 0x20080522
_OVERRIDES = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def bound_by_permissions(act: Callable[[], T]) -> T:
    """Return what `act` returns, called where no permission is overridden, by it or by the processes that it starts.

    For root that is a thread without the capabilities that override them: Linux keeps those for each thread, and a
    process has no more than the thread that started it. Raises OSError where they cannot be given up.
    """
    if os.geteuid() != 0:
        return act()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_bound, act).result()


def _bound(act: Callable[[], T]) -> T:
    _give_up_overrides()
    return act()


def _give_up_overrides() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in _OVERRIDES:
        _require(libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0))
    header, sets = _Header(_VERSION_3, 0), (_Sets * 2)()
    _require(libc.capget(ctypes.byref(header), sets))
    for capability in _OVERRIDES:
        sets[0].effective &= ~(1 << capability)
        sets[0].permitted &= ~(1 << capability)
        sets[0].inheritable &= ~(1 << capability)
    _require(libc.capset(ctypes.byref(header), sets))


def _require(answer: int) -> None:
    if answer:
        raise OSError(ctypes.get_errno(), "root could not give up what overrides permissions")
