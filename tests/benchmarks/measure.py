"""Taking times: warmed up once, the two sides in turn, the median of several with the least and the most."""

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Times:
    """The seconds that the same thing took, several times."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        low, middle, high = (round(1000 * one) for one in (min(self.seconds), self.median, max(self.seconds)))
        return f"{middle} ms ({low} to {high})"


def counts_processor_time() -> bool:
    """Whether not the clock's time is taken but the processors', which a busy machine changes little."""
    return "PROCESSOR_TIME" in os.environ


def _now() -> float:
    return sum(os.times()[:4]) if counts_processor_time() else time.perf_counter()


class Laps:
    """A stop watch: what each step took, in seconds; of processor time that of this process and of its children."""

    def __init__(self) -> None:
        self.taken: list[float] = []
        self._began = _now()

    def lap(self) -> None:
        """Note what it took since the last lap."""
        self.taken.append(_now() - self._began)
        self.skip()

    def skip(self) -> None:
        """Leave out what it took since the last lap."""
        self._began = _now()


Timed = Callable[[], float]  # does something once and returns the seconds that the part in question took


def interleaved(rounds: int, *sides: Timed) -> list[Times]:
    """Time each side `rounds` times, in turn, after one turn that does not count."""
    turns = [[side() for side in sides] for _ in range(rounds + 1)][1:]
    return [Times(side) for side in zip(*turns, strict=True)]


def timed(action: Callable[[], object]) -> Timed:
    """Return what times the whole of `action`."""

    def take() -> float:
        began = _now()
        action()
        return _now() - began

    return take


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table; `met` is None for a figure without an aim."""

    what: str
    ours: str
    bare: str = ""
    compared: str = ""
    aim: str = ""
    met: bool | None = None

    def cells(self) -> tuple[str, ...]:
        """Return the row as it is printed."""
        verdict = {None: "", True: "met", False: "missed"}[self.met]
        return (self.what, self.ours, self.bare, self.compared, f"{self.aim} {verdict}".strip())


def ratio(what: str, ours: Times, bare: Times, *, at_most: float | None = None) -> Row:
    """Compare two sides by the ratio of their medians."""
    found = ours.median / bare.median
    aim = "" if at_most is None else f"≤ {at_most:g} x"
    return Row(what, str(ours), str(bare), f"{found:.2f} x", aim, None if at_most is None else found <= at_most)


def more(what: str, ours: Times, less: Times, bare: Times, *, at_most: float) -> Row:
    """Compare what `ours` takes longer than `less`, turn by turn, with all that `bare` takes."""
    added = Times(tuple(one - other for one, other in zip(ours.seconds, less.seconds, strict=True)))
    return ratio(what, added, bare, at_most=at_most)


def difference(what: str, ours: Times, bare: Times, *, at_most: float | None = None) -> Row:
    """Compare two sides by the difference of their medians, in seconds."""
    found = ours.median - bare.median
    aim = "" if at_most is None else f"≤ {1000 * at_most:g} ms"
    return Row(
        what, str(ours), str(bare), f"+{1000 * found:.0f} ms", aim, None if at_most is None else found <= at_most
    )


def seconds(what: str, ours: Times, *, at_most: float | None = None) -> Row:
    """Compare a time with its aim, in seconds."""
    aim = "" if at_most is None else f"≤ {1000 * at_most:g} ms"
    return Row(what, str(ours), aim=aim, met=None if at_most is None else ours.median <= at_most)


def count(what: str, found: float, *, at_most: int) -> Row:
    """Compare a count with its aim."""
    return Row(what, f"{found:g}", aim=f"≤ {at_most}", met=found <= at_most)


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    head = ("what", "Nightkeep", "bare", "compared", "aim")
    lines = [head, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |" for line in lines
    )
