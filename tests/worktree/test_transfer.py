"""What a server may answer to a push from within this process: only what was seen there counts."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from worktree.errors import TransferError
from worktree.redaction import Redactor
from worktree.remote import RefUpdate
from worktree.transfer import Parcel, Sending, send

OID, OLD = "1" * 40, "2" * 40
REF = "refs/nightkeep/checkpoints/run"
Answer = tuple[int, bytes]
Asked = tuple[str, dict[str, str], bytes]  # path, headers, body
TAKEN = b"000eunpack ok\n" + f"{len(REF) + 8:04x}ok {REF}\n".encode() + b"0000"
THERE = f"{len(REF) + 46:04x}{OID} {REF}\n".encode() + b"0000"


class _Handler(BaseHTTPRequestHandler):
    answers: Mapping[str, Callable[[], Answer]]
    asked: list[Asked]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append((self.path, dict(self.headers), body))
        status, text = self.answers[self.path.rsplit("/", 1)[1]]()
        self.send_response(status)
        if status == 307:
            self.send_header("Location", "/elsewhere/git-receive-pack")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(
    pushed: Answer, read: Answer = (200, THERE)
) -> Iterator[tuple[str, list[tuple[str, dict[str, str], bytes]]]]:
    """Serve those answers; yield the address, and what was asked."""
    asked: list[tuple[str, dict[str, str], bytes]] = []
    answers = {"git-receive-pack": lambda: pushed, "git-upload-pack": lambda: read}
    handler = type("Handler", (_Handler,), {"answers": answers, "asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/acme/widget.git", asked
        server.shutdown()


def parcel(url: str, **changes: object) -> Parcel:
    facts = {"url": url, "token": "canary", "updates": (RefUpdate(REF, OID, OLD),), "pack": b"PACKdata"}
    return Parcel(**{**facts, **changes})  # type: ignore[arg-type]  # of the right kinds, as the tests write them


def test_what_is_asked_for_is_a_change_from_the_old_value_and_a_look() -> None:
    with serving((200, TAKEN)) as (url, asked):
        send(parcel(url))
    (path, headers, body), (looked, look, question) = asked
    assert (path, looked) == ("/acme/widget.git/git-receive-pack", "/acme/widget.git/git-upload-pack")
    assert f"{OLD} {OID} {REF}\0report-status object-format=sha1".encode() in body
    assert body.endswith(b"0000PACKdata")
    assert (look["Git-Protocol"], f"ref-prefix {REF}".encode() in question) == ("version=2", True)
    assert headers["Authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    ("pushed", "read", "said"),
    [
        ((200, b"000eunpack ok\n0019ng refs/x stale info\n0000"), (200, THERE), "ng refs/x stale info"),
        ((200, b"0019unpack index-pack no\n0000"), (200, THERE), "unpack index-pack no"),
        ((200, b"0000"), (200, THERE), "it said nothing"),
        ((200, TAKEN), (200, b"0000"), "does not hold it"),
        ((200, TAKEN), (200, THERE.replace(b"1" * 40, b"3" * 40)), "does not hold it"),
        ((200, TAKEN), (200, b"0009word\n0000"[:9] + b"0000"), "does not hold it"),
        ((200, TAKEN), (500, b"oops"), "origin answered 500: oops"),
        ((401, b"Bad credentials"), (200, THERE), "origin answered 401: Bad credentials"),
        ((307, b""), (200, THERE), "origin answered 307"),
        ((200, b"<html>hello</html>"), (200, THERE), "not git's"),
        ((200, b"00ffunpack ok\n"), (200, THERE), "cut short"),
        ((200, b"x" * (1 << 21)), (200, THERE), "too long"),
    ],
)
def test_anything_else_than_taken_and_seen_is_trouble(pushed: Answer, read: Answer, said: str) -> None:
    with serving(pushed, read) as (url, asked), pytest.raises(TransferError, match=said) as raised:
        send(parcel(url))
    assert "canary" not in str(raised.value)
    assert {path.rpartition("/")[0] for path, _, _ in asked} == {"/acme/widget.git"}, "it is followed nowhere"


def test_server_that_is_not_there_is_trouble_for_whoever_looks() -> None:
    with serving((200, TAKEN)) as (url, _):
        pass
    sending = Sending(parcel(url))
    sending.start()
    sending.join(10)
    assert sending.trouble
    assert "canary" not in sending.trouble


def test_an_answer_that_was_lost_is_looked_for() -> None:
    with serving((502, b"gone")) as (url, _):
        sending = Sending(parcel(url))
        sending.start()
        sending.join(10)
    assert (sending.trouble, sending.found) == (None, {REF: OID})


def test_a_token_that_a_server_says_back_is_masked_before_anything_is_cut() -> None:
    with serving((403, b"x" * 190 + b" canary-in-a-coal-mine"), (500, b"")) as (url, _):
        sending = Sending(parcel(url, redact=Redactor(["canary-in-a-coal-mine"])))
        sending.start()
        sending.join(10)
    assert sending.trouble
    assert "canary" not in sending.trouble


def test_two_refs_are_asked_for_together_and_a_deletion_has_no_pack() -> None:
    both = (RefUpdate(REF, OID, OLD), RefUpdate("refs/heads/x", "", OLD))
    with serving((200, TAKEN)) as (url, asked):
        send(parcel(url, updates=both))
        with pytest.raises(TransferError):
            send(parcel(url, updates=(both[1], RefUpdate(REF, "", OID))))
    assert b" atomic" in asked[0][2]
    assert f"{OLD} {'0' * 40} refs/heads/x\n".encode() in asked[0][2]
    assert asked[2][2].endswith(b"0000")


def test_ids_of_the_other_kind() -> None:
    oid = "a" * 64
    there = f"{len(REF) + 70:04x}{oid} {REF}\n".encode() + b"0000"
    with serving((200, TAKEN), (200, there)) as (url, asked):
        send(parcel(url, updates=(RefUpdate(REF, oid, ""),), object_format="sha256"))
    assert f"{'0' * 64} {oid} {REF}".encode() in asked[0][2]
    assert b"object-format=sha256" in asked[1][2]
