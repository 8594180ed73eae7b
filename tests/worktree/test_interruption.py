"""The first signal is remembered, and nothing clears it."""

import signal
import time

import pytest

from worktree import Interruption

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def test_nothing_is_recorded_at_first() -> None:
    assert Interruption().recorded is None


@pytest.mark.parametrize("first", SIGNALS)
def test_the_first_signal_stays(first: signal.Signals) -> None:
    latch = Interruption()
    for signum in (first, *SIGNALS):
        latch.record(int(signum))
        assert latch.recorded is first


def test_it_cannot_be_cleared() -> None:
    latch = Interruption()
    latch.record(signal.SIGINT)
    with pytest.raises(AttributeError):
        latch.recorded = None  # type: ignore[misc]
    assert latch.recorded is signal.SIGINT


def test_a_signal_handler_may_record() -> None:
    latch = Interruption()
    before = signal.signal(signal.SIGHUP, lambda signum, _: latch.record(signum))
    try:
        signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert latch.recorded is signal.SIGHUP


def test_latches_do_not_share_what_they_remember() -> None:
    one, two = Interruption(), Interruption()
    one.record(signal.SIGTERM)
    assert two.recorded is None


def test_waiting_ends_with_a_signal_unless_something_is_finished() -> None:
    latch, ticks = Interruption(), list[int]()

    def tick() -> None:
        ticks.append(1)
        latch.record(signal.SIGTERM)

    began = time.monotonic()
    latch.wait(60, tick)
    assert (len(ticks), time.monotonic() - began < 10) == (1, True)
    latch.wait(60, tick)
    assert len(ticks) == 1
    latch.wait(0.001, tick, finishing=True)
    assert len(ticks) == 2


def test_what_is_raised_meanwhile_ends_a_wait() -> None:
    with pytest.raises(ZeroDivisionError):
        Interruption().wait(60, lambda: 1 / 0)
