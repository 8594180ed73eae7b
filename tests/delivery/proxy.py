"""A proxy in front of a hub that can be told to lose an answer, or to give another."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests

_PATIENCE = 30


@dataclass(frozen=True, slots=True)
class Trouble:
    """What happens to a request whose method and path fit, the first `times` times.

    `forwarded` says whether the hub gets it all the same. `status` is what the client gets, 0 for a connection
    that breaks.
    """

    method: str
    path: str
    status: int
    times: int = 1
    forwarded: bool = False
    body: bytes = b'{"message": "trouble"}'


@dataclass(slots=True)
class Proxy:
    """`url` is the proxy's address; `seen` every request that it got, as (method, path)."""

    url: str = ""
    trouble: list[Trouble] = field(default_factory=list)
    seen: list[tuple[str, str]] = field(default_factory=list)

    def count(self, method: str, path: str) -> int:
        """Return how many requests had that method and a path that ends so."""
        return len([one for one in self.seen if one[0] == method and one[1].partition("?")[0].endswith(path)])

    def next_trouble(self, method: str, path: str) -> Trouble | None:
        """Return what is to go wrong with a request that was just seen."""
        for trouble in self.trouble:
            fits = trouble.method == method and path.partition("?")[0].endswith(trouble.path)
            if fits and self.count(method, trouble.path) <= trouble.times:
                return trouble
        return None


@contextmanager
def proxy(hub_url: str) -> Iterator[Proxy]:
    """Serve a proxy of the hub's API while the block lasts; addresses in its answers are the proxy's own."""
    served = Proxy()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            with lock:
                served.seen.append((self.command, self.path))
                trouble = served.next_trouble(self.command, self.path)
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if trouble is None or trouble.forwarded:
                status, headers, body = self.forward(sent)
            if trouble is not None:
                status, headers, body = trouble.status, {"Content-Type": "application/json"}, trouble.body
            if status == 0:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def forward(self, sent: bytes) -> tuple[int, dict[str, str], bytes]:
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            answer = requests.request(
                self.command, hub_url + self.path, data=sent, headers=headers, timeout=_PATIENCE, allow_redirects=False
            )
            kept = {name: answer.headers[name] for name in ("Content-Type", "Link") if name in answer.headers}
            ours = {name: value.replace(hub_url, served.url) for name, value in kept.items()}
            return answer.status_code, ours, answer.content.replace(hub_url.encode(), served.url.encode())

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer  # noqa: N815 - the names that http.server looks for

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()
