"""What is mounted where."""

import re
from pathlib import Path

_TABLE = Path("/proc/self/mountinfo")


def mounts_below(directory: Path) -> list[str]:
    """Return the mount points at or below `directory` (Linux; elsewhere nothing is known)."""
    if not _TABLE.exists():
        return []
    points = (_plain(line.split(" ")[4]) for line in _TABLE.read_text(errors="surrogateescape").splitlines())
    return [point for point in points if point == str(directory) or point.startswith(f"{directory}/")]


def _plain(field: str) -> str:
    """Return a field without its octal escapes, which stand for blanks and the like."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
