"""Reading a YAML file into plain values, with the line of each key."""

from dataclasses import dataclass, field

import yaml

from runner.settings.places import KeyPath, dotted

LARGEST = 64 * 1024
"""Bytes that a file may have."""
_DEEPEST = 8
_TAG = "tag:yaml.org,2002:"
# What YAML 1.1 makes of a word beyond these is of no use here: 1:30 would be 90, and 2024-01-01 a date.
_TEXT_TAGS = {f"{_TAG}{name}" for name in ("str", "timestamp", "merge", "value")}


@dataclass(slots=True)
class Document:
    """What a file says: its values, the line of each key and entry, and what is wrong with it, by line."""

    values: dict[str, object] = field(default_factory=dict)
    lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[tuple[int, str]] = field(default_factory=list)


def read_document(text: str) -> Document:
    """Read a file's text. Never raises for what the text holds; see `problems`, with line 0 for the whole file."""
    document = Document()
    try:
        root = _compose(text)
    except _RefusedError as error:
        document.problems.append((error.line, str(error)))
        return document
    if isinstance(root, yaml.MappingNode):
        document.values = _Reader(document).mapping(root, ())
    elif root is not None and root.tag != f"{_TAG}null":
        line = root.start_mark.line + 1
        document.problems.append((line, "the file must hold keys with values, as in: agent: COMMAND"))
    return document


def _compose(text: str) -> yaml.Node | None:
    if len(text.encode(errors="replace")) > LARGEST:
        raise _RefusedError(0, f"is larger than {LARGEST // 1024} KiB")
    try:
        return yaml.compose(text, Loader=_Loader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _RefusedError(line, f"not YAML: the character U+{error.character:04X} is not allowed") from error
    except yaml.MarkedYAMLError as error:
        raise _not_yaml(text, error) from error
    except (ValueError, OverflowError) as error:  # an escape beyond the last character
        raise _RefusedError(0, f"not YAML: {error}") from error


class _RefusedError(Exception):
    """YAML that we do not read, though others may."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


class _Loader(yaml.SafeLoader):
    """Composes nodes, but follows no alias and goes no deeper than any setting is."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]  # the stubs leave it untyped
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise _RefusedError(line, f"the alias *{event.anchor} is refused; write the value out")
        if self.depth >= _DEEPEST:
            raise _RefusedError(line, "this is nested deeper than any setting")
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


def _not_yaml(text: str, error: yaml.MarkedYAMLError) -> _RefusedError:
    line = error.problem_mark.line if error.problem_mark else 0
    lines = text.split("\n")
    written = lines[line] if line < len(lines) else ""
    if "\t" in written[: len(written) - len(written.lstrip())]:
        return _RefusedError(line + 1, "not YAML: a tab stands where only spaces may; indent with spaces")
    said = ", ".join(part for part in (error.context, error.problem) if part)
    return _RefusedError(line + 1, f"not YAML: {said}")


@dataclass(frozen=True, slots=True)
class _Reader:
    document: Document

    def mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, object]:
        values: dict[str, object] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            here = (*path, key.value) if isinstance(key.value, str) else path
            wrong = self._wrong_key(key, here)
            if wrong:
                self.document.problems.append((line, wrong))
            else:
                self.document.lines[here] = line
                values[key.value] = self.value(value, here)
        return values

    def _wrong_key(self, key: yaml.Node, here: KeyPath) -> str | None:
        if not isinstance(key, yaml.ScalarNode):
            return "a key must be a word"
        if key.tag != f"{_TAG}str":
            return f'"{dotted(here)}" is no key: YAML reads it as {_kind(key)}, not as text'
        if here in self.document.lines:
            return f'"{dotted(here)}" stands twice; the first is in line {self.document.lines[here]}'
        return None

    def value(self, node: yaml.Node, path: KeyPath) -> object:
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self._entry(entry, (*path, index)) for index, entry in enumerate(node.value)]
        try:
            return _scalar(node)
        except ValueError:
            self.document.problems.append((node.start_mark.line + 1, f"the tag {node.tag} is refused"))
            return None

    def _entry(self, node: yaml.Node, path: KeyPath) -> object:
        self.document.lines[path] = node.start_mark.line + 1
        return self.value(node, path)


def _scalar(node: yaml.Node) -> object:
    match node.tag.removeprefix(_TAG):
        case "null":
            return None
        case "bool":
            return node.value.lower() in ("yes", "true", "on")
        case "int" | "float":
            return _number(node.value)
    if node.tag not in _TEXT_TAGS:
        raise ValueError(node.tag)
    return node.value


def _number(text: str) -> float | int | str:
    """Return a decimal number; what only YAML takes for one stays text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _kind(node: yaml.Node) -> str:
    kinds = {"bool": "true or false", "null": "nothing", "int": "a number", "float": "a number", "timestamp": "a date"}
    return kinds.get(node.tag.removeprefix(_TAG), node.tag.removeprefix(_TAG))
