"""Taking out of an issue what GitHub does not show, so that the agent is told what the maintainers have read.

Whoever wants to tell an agent something behind their backs writes it where GitHub shows nothing: in an HTML comment, in
an attribute or a definition that no link uses (`markup.py`), in characters without width. What is folded away
(`<details>`) or stands in for a picture (`alt`) can be seen, and stays. Where it is not sure whether GitHub shows
something, it is taken out: a comment that stands in a block of code is, too.
"""

import re
import unicodedata

from delivery.markup import shown_markup

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
# Other constructs of HTML that show nothing: https://spec.commonmark.org/0.31.2/#html-blocks, kinds 3 to 5.
_UNSHOWN = re.compile(r"<\?.*?(?:\?>|\Z)|<![A-Za-z].*?(?:>|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)", re.DOTALL)
_JOINERS = "\u200c\u200d"
_VARIANTS = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0), *range(0x180B, 0x1810))))
_PICTURE_VARIANTS = "\ufe0e\ufe0f"
# Letters without a picture: fillers of Hangul and Khmer, the grapheme joiner, an empty pattern of Braille.
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_NEVER_SHOWN = range(0xE0000, 0xE1000)  # whatever comes to stand there, says Unicode


def visible_markdown(text: str) -> str:
    """Return a text in GitHub's Markdown without what GitHub does not show."""
    shown = visible_characters(text.replace("\r\n", "\n").replace("\r", "\n"))
    # What is taken out may bring together what stood around it; that was to be seen, and is read as text.
    gone: list[str] = []
    for pattern in (_COMMENT, _UNSHOWN):
        gone += pattern.findall(shown)
        shown = pattern.sub("", shown)
    # Where GitHub took it for code, it may have ended there.
    shown = shown_markup(shown, may_be_code=not any(mark in one for one in gone for mark in "`~"))
    return re.sub(r"\n{4,}", "\n\n\n", shown).strip("\n")


def visible_characters(text: str) -> str:
    """Return a text without characters that have no picture, or turn the direction of others.

    A joiner stays between two characters of a script or of emoji, and so does what asks for a coloured one.
    """
    kept: list[str] = []
    for place, char in enumerate(text):
        following = text[place + 1 : place + 2]
        before = text[place - 1] if place else ""
        joins = char in _JOINERS and _is_joined(before) and _is_joined(following)
        if joins or (char in _PICTURE_VARIANTS and _is_joined(before)) or not _is_hidden(char):
            kept.append(char)
    return "".join(kept)


def _is_joined(char: str) -> bool:
    return char > "\x7f" and not _is_hidden(char)


def _is_hidden(char: str) -> bool:
    if char in "\n\t":
        return False
    if ord(char) in _NEVER_SHOWN:
        return True
    return char in _VARIANTS or char in _BLANKS or unicodedata.category(char) in _HIDDEN_CATEGORIES
