"""Pushing from within this process, for while an agent runs.

A git command that is given a token can be read by every process of the same user, and while a session runs there are
such. So the pack is made by git without a token, and sent from here: this process cannot be read by its children.
Git's smart HTTP protocol, https://git-scm.com/docs/http-protocol and https://git-scm.com/docs/protocol-v2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING

from worktree.remote import ABSENT, RefUpdate

if TYPE_CHECKING:
    from requests import Response

_SECONDS = 30  # for an answer to begin, and between two pieces of it
_FLUSH, _DELIMITER = b"0000", b"0001"
_LONGEST = 1 << 20  # bytes of an answer
_AGENT = "agent=nightkeep"


class TransferError(Exception):
    """Origin did not take what was sent, or was not seen to hold it. The text is for a person, and has no token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """What is sent to `url`: updates of refs, each with the object id that it must have there (ABSENT for none), and a
    pack of what they name. `object_format` is git's word for the kind of the ids.
    """

    url: str
    token: str
    updates: Sequence[RefUpdate]
    pack: bytes
    object_format: str = "sha1"


class Sending(Thread):
    """Sends a parcel while the caller goes on. Once it has ended, `trouble` says why origin lacks it, None when it was
    seen there. It cannot be stopped, and ends by itself with the process.
    """

    def __init__(self, parcel: Parcel) -> None:
        super().__init__(daemon=True)
        self.parcel = parcel
        self.trouble: str | None = None

    def run(self) -> None:
        """Send it."""
        import requests

        try:
            send(self.parcel)
        except (TransferError, requests.RequestException) as error:
            self.trouble = " ".join(str(error).split())


def send(parcel: Parcel) -> None:
    """Make all refs of the parcel what they are to be, or none, and see that origin holds them.

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
    refused = [line for line in said if line != "unpack ok" and not line.startswith("ok ")]
    if refused or not said:
        raise TransferError(f"origin did not take it: {'; '.join(refused) or 'it said nothing'}")
    there = _refs(parcel)
    if any(there.get(update.ref, ABSENT) != update.new for update in parcel.updates):
        raise TransferError("origin took it but does not hold it")


def _refs(parcel: Parcel) -> dict[str, str]:
    """Return what origin holds at the parcel's refs."""
    prefixes = [_packet(f"ref-prefix {update.ref}".encode()) for update in parcel.updates]
    head = [_packet(b"command=ls-refs"), _packet(_AGENT.encode())]
    head.append(_packet(f"object-format={parcel.object_format}".encode()))
    rows = _ask(parcel, "git-upload-pack", b"".join([*head, _DELIMITER, *prefixes, _FLUSH]), version=2)
    return {ref: oid for oid, ref in (row.decode(errors="replace").split()[:2] for row in rows)}


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
        text = _read(answer)
        if answer.status_code != requests.codes.ok:
            said = " ".join(text[:200].decode(errors="replace").split())
            raise TransferError(f"origin answered {answer.status_code}: {said}")
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
