"""A model on loopback that says what a script tells it to, to Claude Code and to Codex.

It speaks as much of Anthropic's Messages API and of OpenAI's Responses API, both as event streams, as the two need.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Say:
    """The model says something, which ends its turn."""

    text: str


@dataclass(frozen=True)
class Use:
    """The model uses a tool."""

    tool: str
    given: Mapping[str, Any]


@dataclass(frozen=True)
class Refuse:
    """The service refuses."""

    status: int
    kind: str
    text: str = "scripted"


@dataclass(frozen=True)
class Hang:
    """The service does not answer as long as the model is served."""


Turn = Say | Use | Refuse | Hang


@dataclass
class Model:
    """A model at `url`; `heard` are the messages of each request that had a turn."""

    url: str
    turns: Sequence[Turn]
    heard: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, messages: object) -> Turn:
        """Return the next turn; the last one is repeated."""
        with self._lock:
            self.heard.append(json.dumps(messages))
            return self.turns[min(len(self.heard), len(self.turns)) - 1]


@contextmanager
def serve(*turns: Turn) -> Iterator[Model]:
    """Serve a model that takes these turns."""

    class Handler(_Handler):
        model: Model

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.model = model = Model(f"http://127.0.0.1:{server.server_port}", turns)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield model
    finally:
        model.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    model: Model

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        self._answer(404, {"error": {"message": "not here"}})

    def do_HEAD(self) -> None:
        self._answer(200, {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        match self.path.split("?")[0].rpartition("/v1/")[2]:
            case "messages" if body.get("tools"):
                self._take(self.model.next(body["messages"]), _message_events)
            case "messages":  # a title for the session, for example
                self._stream(_message_events(Say("ok"), 0))
            case "responses":
                self._take(self.model.next(body["input"]), _response_events)
            case _:
                self._answer(200, {"input_tokens": 1})

    def _take(self, turn: Turn, events: Any) -> None:
        match turn:
            case Refuse(status, kind, text):
                error = {"type": kind, "code": kind, "message": text}
                self._answer(status, {"type": "error", "error": error})
            case Hang():
                self.model.over.wait()
            case _:
                self._stream(events(turn, len(self.model.heard)))

    def _answer(self, status: int, document: object) -> None:
        text = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def _stream(self, events: Sequence[Mapping[str, Any]]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in events:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


def _message_events(turn: Say | Use, number: int) -> Sequence[Mapping[str, Any]]:
    match turn:
        case Say(text):
            block: dict[str, Any] = {"type": "text", "text": ""}
            delta, stop = {"type": "text_delta", "text": text}, "end_turn"
        case Use(tool, given):
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": {}}
            delta, stop = {"type": "input_json_delta", "partial_json": json.dumps(given)}, "tool_use"
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "content": []}
    return [
        {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def _response_events(turn: Say | Use, number: int) -> Sequence[Mapping[str, Any]]:
    match turn:
        case Say(text):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            item: dict[str, Any] = {"type": "message", "role": "assistant", "status": "completed", "content": content}
        case Use(tool, given):
            item = {"type": "function_call", "call_id": f"call_{number}", "name": tool, "arguments": json.dumps(given)}
    item["id"] = f"item_{number}"
    counts = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    response = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": [item]}
    return [
        {"type": "response.created", "response": {"id": response["id"]}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response | {"usage": counts | details}},
    ]
