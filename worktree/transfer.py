"""Pushing from within this process, for while an agent runs.

A git command that is given a token can be read by every process of the same user, and while a session runs there are
such. So the pack is made by git without a token, and sent from here: this process cannot be read by its children.
Git's smart HTTP protocol, https://git-scm.com/docs/http-protocol and https://git-scm.com/docs/protocol-v2.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING

from worktree.errors import TransferError
from worktree.origin import Origin
from worktree.remote import ABSENT, RefUpdate

if TYPE_CHECKING:
    from requests import Response

_SECONDS = 30  # for an answer to begin, and between two pieces of it
_FLUSH, _DELIMITER = b"0000", b"0001"
_LONGEST = 1 << 20  # bytes of an answer
_MOST_SHOWN = 200  # characters of an answer
_AGENT = "agent=nightkeep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """What is sent to `url`: updates of refs, each with the object id that it must have there (ABSENT for none), and a
    pack of what they name. `object_format` is git's word for the kind of the ids. What a server says goes through
    `redact` before anybody reads it, and the `Date` of each answer to `heard`. Refs that begin with one of `besides`
    are looked at as well, once it was sent.
    """

    url: str
    token: str
    updates: Sequence[RefUpdate]
    pack: bytes
    object_format: str = "sha1"
    redact: Callable[[str], str] = str
    heard: Callable[[str | None], object] = str
    besides: Sequence[str] = ()


def can_send_to(origin: Origin) -> bool:
    """Whether this is the way to push there: over HTTP, with a token. Where there is none git may push by itself."""
    return origin.token is not None and origin.url.startswith(("http://", "https://"))


class Sending(Thread):
    """Sends a parcel while the caller goes on. It cannot be stopped, and ends by itself with the process.

    Once it has ended, `trouble` says why origin was not seen to hold it, None when it was, and `is_refusal` whether
    origin refused it; `found` are origin's refs as they were seen then, None when nobody saw them.
    """

    def __init__(self, parcel: Parcel) -> None:
        super().__init__(daemon=True)
        self.parcel = parcel
        self.trouble: str | None = "it has not been sent"
        self.is_refusal = False
        self.found: Mapping[str, str] | None = None

    def run(self) -> None:
        """Send it; an answer that was lost is looked for."""
        try:
            self.found = send(self.parcel)
            self.trouble = None
        except Exception as error:
            self.trouble = self.parcel.redact(" ".join(str(error).split()))
            self.is_refusal = isinstance(error, TransferError) and error.is_refusal
            with suppress(Exception):
                self.found = _refs(self.parcel)
                self.trouble = None if _is_done(self.parcel, self.found) else self.trouble


def send(parcel: Parcel) -> Mapping[str, str]:
    """Make all refs of the parcel what they are to be, or none, and see that origin holds them; return them.

    Raises TransferError, or an error of `requests` when origin cannot be reached.
    """
    empty = "0" * (64 if parcel.object_format == "sha256" else 40)
    words = [f"report-status object-format={parcel.object_format} {_AGENT}"]
    words += ["atomic"] if len(parcel.updates) > 1 else []
    commands = [f"{update.expected or empty} {update.new or empty} {update.ref}".encode() for update in parcel.updates]
    commands[0] += b"\0" + " ".join(words).encode()
    deletes = all(update.new == ABSENT for update in parcel.updates)
    body = b"".join(map(_packet, commands)) + _FLUSH + (b"" if deletes else parcel.pack)
    said = [line.decode(errors="replace").strip() for line in _ask(parcel, "git-receive-pack", body)]
    refused = [parcel.redact(line) for line in said if line != "unpack ok" and not line.startswith("ok ")]
    if refused or not said:
        told = "; ".join(refused) or "it said nothing"
        raise TransferError(f"origin did not take it: {told}", is_refusal=bool(refused))
    found = _refs(parcel)
    if not _is_done(parcel, found):
        raise TransferError("origin took it but does not hold it")
    return found


def _is_done(parcel: Parcel, found: Mapping[str, str]) -> bool:
    return all(found.get(update.ref, ABSENT) == update.new for update in parcel.updates)


def _refs(parcel: Parcel) -> dict[str, str]:
    """Return what origin holds at the parcel's refs, and at those that are to be looked at."""
    wanted = (*(update.ref for update in parcel.updates), *parcel.besides)
    prefixes = [_packet(f"ref-prefix {prefix}".encode()) for prefix in wanted]
    head = [_packet(b"command=ls-refs"), _packet(_AGENT.encode())]
    head.append(_packet(f"object-format={parcel.object_format}".encode()))
    rows = _ask(parcel, "git-upload-pack", b"".join([*head, _DELIMITER, *prefixes, _FLUSH]), version=2)
    words = [row.decode(errors="replace").split() for row in rows]
    return {row[1]: row[0] for row in words if len(row) > 1}


def _ask(parcel: Parcel, service: str, body: bytes, *, version: int = 0) -> list[bytes]:
    import requests

    headers = {
        "Content-Type": f"application/x-{service}-request",
        "Accept": f"application/x-{service}-result",
        "User-Agent": "git/nightkeep",
    }
    if version:
        headers["Git-Protocol"] = f"version={version}"
    with requests.post(
        f"{parcel.url}/{service}",
        data=body,
        headers=headers,
        auth=("x-access-token", parcel.token),
        timeout=_SECONDS,
        allow_redirects=False,  # the token is for this host only
        stream=True,
    ) as answer:
        parcel.heard(answer.headers.get("Date"))
        text = _read(answer)
        if answer.status_code != requests.codes.ok:
            # Cut only then: half a token is not recognised.
            said = " ".join(parcel.redact(text.decode(errors="replace")).split())
            raise TransferError(f"origin answered {answer.status_code}: {said[:_MOST_SHOWN]}")
    return list(_packets(text))


def _read(answer: "Response") -> bytes:
    text = b""
    for piece in answer.iter_content(1 << 16):
        text += piece
        if len(text) > _LONGEST:
            raise TransferError("origin's answer is too long")
    return text


def _packet(line: bytes) -> bytes:
    return f"{len(line) + 5:04x}".encode() + line + b"\n"


def _packets(text: bytes) -> Iterator[bytes]:
    """Take the lines of an answer apart; raises TransferError for what is none of git's."""
    while text:
        try:
            length = int(text[:4], 16)
        except ValueError:
            raise TransferError("origin's answer is not git's") from None
        if length > len(text):
            raise TransferError("origin's answer is cut short")
        if length > 4:
            yield text[4:length]
        text = text[max(length, 4) :]
