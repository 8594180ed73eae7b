"""Taking secrets out of text before anybody reads it."""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus

MASK = "***"

# Shapes that are secrets wherever they stand: GitHub's, Anthropic's, OpenAI's, AWS's, Slack's and Google's tokens,
# private keys, and the credential in a URL or a header.
_SHAPES = re.compile(
    r"gh[pousr]_[A-Za-z0-9]{20,}"
    r"|github_pat_[A-Za-z0-9_]{20,}"
    r"|sk-[A-Za-z0-9_-]{20,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|xox[abeprs]-[A-Za-z0-9-]{10,}"
    r"|AIza[A-Za-z0-9_-]{35}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"
    r"|(?i:(?<=authorization: )(?:basic|bearer|token) \S+)"
)
_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY", re.IGNORECASE)
_SHORTEST_SECRET = 8


class Redactor:
    """Masks known secret values, and whatever has the shape of a well-known token.

    A known value is masked as it is, URL-encoded, JSON-escaped (twice, too), in base64, and in the base64 of GitHub's
    basic authentication; a value of several lines also line by line, and one that is a JSON document also by each
    string in it. Values shorter than eight characters are
    ignored: masking them would mask ordinary words.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms: set[str] = set()
        for secret in secrets:
            for value in {secret, secret.strip(), *secret.splitlines(), *_strings_in(secret)}:
                if len(value) >= _SHORTEST_SECRET:
                    forms |= _forms(value)
        self._forms = frozenset(form.encode(errors="surrogateescape") for form in forms)
        # Longest first, so that no form is cut short by one that it contains.
        self._known = re.compile("|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)) or r"(?!)")

    @property
    def forms(self) -> frozenset[bytes]:
        """The forms in which known values are masked, for whoever has to find them in files."""
        return self._forms

    def __call__(self, text: str) -> str:
        """Return `text` with every secret replaced by `***`."""
        return _SHAPES.sub(MASK, self._known.sub(MASK, text))


def secrets_in(environment: Mapping[str, str]) -> list[str]:
    """Return the values of `environment` whose names say that they are secret."""
    return [value for name, value in environment.items() if value and _SECRET_NAME.search(name)]


def _strings_in(secret: str) -> Iterator[str]:
    """Return the strings of a JSON document, as the credentials of a service account are; none for other text."""
    if not secret.lstrip().startswith(("{", "[")):
        return
    try:
        parts = [json.loads(secret)]
    except (ValueError, RecursionError):
        return
    while parts:
        match parts.pop():
            case str() as text:
                sound = text.encode(errors="ignore").decode()  # half of a character cannot be printed either
                yield from {sound, *sound.splitlines()}
            case dict() as fields:
                parts.extend(fields.values())
            case list() as entries:
                parts.extend(entries)


def _forms(value: str) -> set[str]:
    raw = value.encode(errors="surrogateescape")
    escaped = json.dumps(value)[1:-1]
    quoted = {encode(raw, safe="") for encode in (quote, quote_plus)}
    printed = {escaped, json.dumps(value, ensure_ascii=False)[1:-1]}
    printed |= {one.replace("/", "\\/") for one in printed}  # as PHP and others write it
    forms = {value, *printed, *(json.dumps(one)[1:-1] for one in printed), *quoted}
    forms.add(base64.b64encode(b"x-access-token:" + raw).decode())
    # The bytes around the value decide how it falls into base64's groups of three: cover all three, without the
    # characters at either end that the neighbours share.
    for lead, first in enumerate((0, 2, 3)):
        encoded = base64.b64encode(b"\0" * lead + raw).decode().rstrip("=")
        shared = 1 if (lead + len(raw)) % 3 else 0
        forms.add(encoded[first : len(encoded) - shared])
    return {form for form in forms if len(form) >= _SHORTEST_SECRET}
