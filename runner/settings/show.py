"""Settings as rows for people."""

import re
from functools import reduce
from typing import Any

import yaml

from runner.settings.keys import keys
from runner.settings.load import LoadedSettings
from runner.settings.places import KeyPath, dotted
from worktree import Redactor

# What follows the name of a secret in a command: --api-key VALUE, SERVICE_TOKEN=VALUE.
_NAMED_SECRET = re.compile(
    r"((?:--?[\w-]*(?:token|secret|password|api[-_]?key)[= ]|\b\w*(?:token|secret|password|api_?key)=) *)"
    r"('[^']*'|\"[^\"]*\"|\S+)",
    re.IGNORECASE,
)


def show(loaded: LoadedSettings, redact: Redactor | None = None) -> list[tuple[str, str, str]]:
    """Return (key, value as YAML in one line, where it comes from) for every key, without secrets.

    `redact` knows the secrets of this machine; without it those with a well-known shape or name are masked.
    """
    values = loaded.settings.model_dump(mode="json", by_alias=True)
    redact = redact or Redactor()
    return [(dotted(path), _as_yaml(_at(values, path), redact), loaded.origins[dotted(path)]) for path in keys()]


def _at(values: Any, path: KeyPath) -> object:
    return reduce(lambda section, name: section[name], path, values)


def _as_yaml(value: object, redact: Redactor) -> str:
    masked = _masked(value, redact)
    style = '"' if isinstance(masked, str) and "\n" in masked else None
    text = yaml.safe_dump(masked, default_style=style, default_flow_style=True, allow_unicode=True, width=10**9)
    return text.removesuffix("\n").removesuffix("\n...")


def _masked(value: object, redact: Redactor) -> object:
    if isinstance(value, str):
        return _NAMED_SECRET.sub(r"\1***", redact(value))
    if isinstance(value, dict):
        return {key: _masked(part, redact) for key, part in value.items()}
    return value
