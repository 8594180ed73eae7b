"""Names, numbers and sizes as people read them."""


def printable(text: str) -> str:
    """Return a name such that a terminal shows it and does nothing else."""
    return text if text.isprintable() else ascii(text)[1:-1]


def counted(number: int, one: str, more: str) -> str:
    """Write how many there are of something."""
    return f"{number} {one if number == 1 else more}"


def written_size(size: int) -> str:
    """Write a number of bytes."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"
