"""Taking out of GitHub's Markdown what its page does not show of marks, links, tags, tables, code and formulas.

Blocks and spans of code are left as they are, but only where it is certain that GitHub takes them for code: anything
else could be used to have a tag pass for one.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping

# What may stand before a block in a quotation or an item of a list.
_INSIDE = r"(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*"
_IN_TITLE = r"\\.|\n(?!\s*\n)"
_TITLES = "|".join(
    rf"{opening}(?:[^{opening}{closing}\\\n]|{_IN_TITLE})*{closing}"
    for opening, closing in (('"', '"'), ("'", "'"), (r"\(", r"\)"))
)
_GAP = r"[ \t]*(?:\n[ \t>]*)?"
# No label is longer: https://spec.commonmark.org/0.31.2/#link-label. And what is bounded is looked for in a moment.
_LABEL = r"(?:[^\[\]\\]|\\.){1,999}"
# [label]: destination "title", perhaps over several lines, but for a blank one.
_DEFINITION = re.compile(
    rf"^{_INSIDE}\[(?!\^)(?P<label>{_LABEL})\]:{_GAP}(?P<destination><[^>\n]*>|\S+)"
    rf"(?:{_GAP}(?:{_TITLES}))?[ \t]*$\n?",
    re.MULTILINE,
)
_FOOTNOTE = re.compile(
    rf"^{_INSIDE}\[\^(?P<label>[^\]\s]+)\]:.*(?:\n[ \t]*\S.*)*(?:\n\s*\n(?: {{4}}|\t).*)*\n?", re.MULTILINE
)
_FOOTNOTE_USED = re.compile(r"\[\^([^\]\s]{1,999})\]")
_NOWHERE = ("#", "")

_OPENING = re.compile(r"(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>.*)")
_ANY_FENCE = re.compile(rf"^(?P<fence>{_INSIDE}(?:`{{3,}}(?=[^`\n]*$)|~{{3,}}))[ \t]*(?P<info>.*)$", re.MULTILINE)
_LANGUAGE = re.compile(r"[\w+#.-]{1,20}(?!\S)")
_HTML_BLOCK = re.compile(rf"^{_INSIDE}<[A-Za-z/!?]", re.MULTILINE)
# Blocks that go on over blank lines: https://spec.commonmark.org/0.31.2/#html-blocks, kind 1.
_LONG_BLOCK = re.compile(r"<(?:pre|script|style|textarea)\b", re.IGNORECASE)
_UNSHOWN_IN_DIAGRAMS = re.compile(r"^[ \t]*(?:%%|accTitle|accDescr|click\b).*\n?", re.MULTILINE)
_BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
_UNSHOWN_IN_FORMULAS = re.compile(rf"\\(?:[hv]?phantom|label)\b\s*(?:{_BRACES}|[^\n]*)")

# A name begins where none is going on: looked for from each of its letters, a long one would take minutes.
_ATTRIBUTE = re.compile(r"""(?<![^\s"'<>/=])(?P<name>[^\s"'<>/=]++)\s*=\s*(?P<value>"[^"]*"|'[^']*'|[^\s"'=<>`]+)""")
_TAG_IN_TEXT = (
    r"</?(?P<name>[A-Za-z][A-Za-z0-9-]*)"
    r"""(?P<attributes>(?:\s+[A-Za-z_:][\w.:-]*(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))?)*)\s*/?>"""
)
_TICKS = re.compile(r"`+")
# The end of each is looked for in all of its paragraph; more than so many steps would be felt.
_MOST_STEPS = 20_000_000
_TEXT = re.compile(
    rf"\\.|(?P<ticks>`+)(?!`)(?:.+?)(?<!`)(?P=ticks)(?!`)|`+|<[A-Za-z][A-Za-z0-9.+-]{{1,31}}:[^\s<>]*>|{_TAG_IN_TEXT}",
    re.DOTALL,
)
# One that does not end takes all that follows with it.
_TAG_IN_HTML = re.compile(
    r"""</?(?P<name>[A-Za-z][\w-]*)(?=[\s/>]|\Z)(?P<attributes>(?:"[^"]*"|'[^']*'|[^'">])*+)(?:>|(?P<unended>[\s\S]*))"""
)
_SHOWN_TAGS = re.compile(
    "a|abbr|b|bdo|blockquote|br|caption|cite|code|dd|del|details|dfn|div|dl|dt|em|figcaption|figure|h[1-6r]|i|img|ins|kbd|"
    "li|mark|ol|p|picture|pre|q|rp|rt|ruby|s|samp|small|source|span|strike|strong|su[bp]|summary|table|tbody|td|tfoot|th|"
    "thead|tr|tt|ul|var|video|wbr"
)
_SHOWN_ATTRIBUTES = {"a": ("href",), "img": ("src", "alt"), "video": ("src",)}
_EMPTY_TAG = re.compile(r"<a\b[^<>]*>\s*</a>", re.IGNORECASE)

_POINTED = re.compile(r"\]\(\s*<(?P<destination>[^<>\n]*)>")
_SPACE = r"(?:[ \t]+(?:\n[ \t>]*)?|\n[ \t>]*)"
_TITLED = re.compile(rf"(?P<link>\]\((?:{_SPACE})?(?:(?!\]\()\S)*+){_SPACE}(?:{_TITLES})\s*\)")
_BY_LABEL = re.compile(rf"\]\[(?P<label>{_LABEL})\]")
_BY_ITSELF = re.compile(rf"\[(?P<label>{_LABEL})\](?:\[\])?(?![\[(:])")
_EMPTY_LINK = re.compile(
    r"(?<![!\\])\[(?P<text>(?:\s|&[#\w]+;|</?(?!img\b)[A-Za-z][^<>]*>)*)\]\((?:[^\s()]|\([^\s()]*\))*\s*\)"
)
_DELIMITERS = re.compile(r"[ \t>]*+\|?[ \t]*+:?-+:?[ \t]*+(?:\|[ \t]*+:?-+:?[ \t]*+)*+\|?[ \t]*+")
_CELL_END = re.compile(r"(?<!\\)\|")


def shown_markup(text: str, *, may_be_code: bool) -> str:
    """Return the text without what the page does not show. Unless it `may_be_code` nothing is taken for code."""
    certain = may_be_code and not _LONG_BLOCK.search(text)
    parts = list(_parts(text) if certain else [(False, text)])
    prose = "\n\n".join(part for is_code, part in parts if not is_code)
    footnotes = set(_FOOTNOTE_USED.findall(_FOOTNOTE.sub("", prose)))
    links = {
        _normal(found["label"]): _destination(found["destination"])
        for found in reversed(list(_DEFINITION.finditer(prose)))
        if not _goes_on(found)
    }
    return "".join(
        _shown_code(part) if is_code else _shown_prose(part, footnotes, links, certain=certain)
        for is_code, part in parts
    )


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Split a text into prose and what is certainly a block of code; after anything that may be one all is prose."""
    prose: list[str] = []
    lines = text.splitlines(keepends=True)
    while lines:
        opening = _OPENING.fullmatch(lines[0].rstrip("\n"))
        if opening is None or (opening["fence"][0] == "`" and "`" in opening["info"]):
            if _ANY_FENCE.match(lines[0]):
                break
            prose.append(lines.pop(0))
            continue
        if _HTML_BLOCK.search("".join(prose).rpartition("\n\n")[2]):
            break
        mark = opening["fence"]
        ends = (n for n, line in enumerate(lines) if n and re.fullmatch(rf" {{0,3}}{mark}{mark[0]}*[ \t]*\n?", line))
        end = next(ends, len(lines) - 1) + 1
        yield False, "".join(prose)
        yield True, "".join(lines[:end])
        prose, lines = [], lines[end:]
    yield False, "".join(prose + lines)


def _shown_code(block: str) -> str:
    first, newline, rest = block.partition("\n")
    language = _OPENING.match(first)
    if language and language["info"].lower().startswith("mermaid"):
        rest = _UNSHOWN_IN_DIAGRAMS.sub("", rest)
    if language and language["info"].lower().startswith("math"):
        rest = _UNSHOWN_IN_FORMULAS.sub("", rest)
    return _ANY_FENCE.sub(_fence, first) + newline + rest


def _fence(match: re.Match[str]) -> str:
    """Keep the language of a block of code, and not what else stands there."""
    language = _LANGUAGE.match(match["info"])
    return match["fence"] + (language[0] if language else "")


def _shown_prose(text: str, footnotes: set[str], links: Mapping[str, str], *, certain: bool) -> str:
    text = _FOOTNOTE.sub(lambda found: found[0] if found["label"] in footnotes else "", text)
    text = _DEFINITION.sub(lambda found: found[0] if _goes_on(found) else "", text)
    text = _ANY_FENCE.sub(_fence, text)
    if "mermaid" in text.lower():
        text = _UNSHOWN_IN_DIAGRAMS.sub("", text)
    text = _without_surplus_cells(text)
    # Neither tags nor spans of code go on over a blank line.
    return "".join(_shown_paragraph(one, links, certain=certain) for one in re.split(r"(\n[ \t]*\n)", text))


def _goes_on(definition: re.Match[str]) -> bool:
    """Whether what looks like a definition surely is in the middle of a paragraph, and shown as a part of it."""
    before = definition.string[: definition.start()].rstrip("\n").rpartition("\n")[2]
    is_next = not definition.string[: definition.start()].endswith("\n\n")
    return is_next and before[:1].isalpha()


def _shown_paragraph(text: str, links: Mapping[str, str], *, certain: bool) -> str:
    kept: list[str] = []

    def in_text(match: re.Match[str]) -> str:
        if match["name"]:
            return _tag(match)
        if match["ticks"]:
            kept.append(match[0])
            return f"\0{len(kept) - 1}\0"  # no text has this character any more
        return match[0]

    steps = len(_TICKS.findall(text)) * len(text)
    if certain and steps <= _MOST_STEPS and not _HTML_BLOCK.search(text):
        text = _TEXT.sub(in_text, text)
    else:
        text = _TAG_IN_HTML.sub(_tag, text)
    text = _UNSHOWN_IN_FORMULAS.sub("", text)
    text = _shown_links(text, links)
    return re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], text)


def _tag(match: re.Match[str]) -> str:
    """Keep a tag that GitHub knows, with where it leads to or what stands in for its picture."""
    name = match["name"].lower()
    if not _SHOWN_TAGS.fullmatch(name) or match.groupdict().get("unended") is not None:
        return ""
    if match[0].startswith("</"):
        return f"</{match['name']}>"
    attributes = [
        f" {one['name']}={one['value']}"
        for one in _ATTRIBUTE.finditer(match["attributes"])
        if one["name"].lower() in _SHOWN_ATTRIBUTES.get(name, ())
        and (one["name"].lower() == "alt" or not re.search(r"\s", one["value"]))
    ]
    return f"<{match['name']}{''.join(attributes)}>"


def _shown_links(text: str, links: Mapping[str, str]) -> str:
    """Write each link with its text and where it leads, which its page shows; labels and titles it does not show."""

    def led(otherwise: Callable[[re.Match[str]], str]) -> Callable[[re.Match[str]], str]:
        def lead(match: re.Match[str]) -> str:
            destination = links.get(_normal(match["label"]))
            return match[0] if destination is None else f"{otherwise(match)}({destination})"

        return lead

    text = _POINTED.sub(lambda found: f"]({_destination(found['destination'])}", text)
    text = _TITLED.sub(lambda found: f"{found['link']})", text)
    text = _BY_LABEL.sub(led(lambda _: "]"), text)
    text = _BY_ITSELF.sub(led(lambda found: f"[{found['label']}]"), text)
    text = _EMPTY_LINK.sub(_shown_empty_link, text)
    return _EMPTY_TAG.sub("", text)


def _shown_empty_link(match: re.Match[str]) -> str:
    text = re.sub(r"<[^<>]*>", "", html.unescape(match["text"]))
    return "" if not text.strip("\u200b\u200c\u200d\u2060\ufeff\u00ad \t\n\u00a0") else match[0]


def _destination(written: str) -> str:
    """Return where a link leads; "" for nowhere, and for words, which are no address."""
    bare = written.removeprefix("<").removesuffix(">")
    return "" if bare in _NOWHERE or re.search(r"\s", bare) else bare


def _normal(label: str) -> str:
    return " ".join(label.casefold().split())


def _without_surplus_cells(text: str) -> str:
    """Cut the rows of tables to as many cells as their heads have."""
    lines = text.split("\n")
    columns = 0
    for n, line in enumerate(lines):
        if not line.strip(" \t>"):
            columns = 0
        elif n and "-" in line and _DELIMITERS.fullmatch(line) and len(_cells(line)) == len(_cells(lines[n - 1])):
            columns = len(_cells(line))
        elif columns and len(_cells(line)) > columns:
            leading = line[: len(line) - len(line.lstrip(" \t>|"))]
            lines[n] = leading + "|".join(_cells(line)[:columns]) + "|"
    return "\n".join(lines)


def _cells(row: str) -> list[str]:
    bare = row.strip(" \t>").removeprefix("|")
    return _CELL_END.split(bare.removesuffix("|") if not bare.endswith("\\|") else bare)
