"""Rows for people: a table on a terminal, aligned text elsewhere."""

import sys
from collections.abc import Sequence


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print to standard output."""
    if sys.stdout.isatty():
        _print_rich(headings, rows)
    else:
        print("\n".join(aligned([headings, *rows])))  # noqa: T201 - the command's output


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return one line for each row, its columns two spaces apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _print_rich(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
