"""The first signal is remembered, and nothing clears it."""

import signal

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
