"""Starting and stopping a hub."""

import fcntl
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType, MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Self

from runner.hub.access import Door, Permission, Token
from runner.hub.checks import Check
from runner.hub.drills import Drill, Drills, Trouble

if TYPE_CHECKING:
    import uvicorn

    from runner.hub.admin import Admin
    from runner.hub.children import Children
    from runner.hub.ci import CI
    from runner.hub.deeds import Deeds
    from runner.hub.observation import Observe
    from runner.hub.store import Store

_HOST = "127.0.0.1"
_NONE: Mapping[str, Path] = MappingProxyType({})
_START_DEADLINE = 30.0  # seconds
_STOP_GRACE = 2.0  # seconds for requests that are still answered when the hub is stopped
_STOP_DEADLINE = 10  # seconds until uvicorn gives up on what is left then


class Hub:
    """A hub served from a thread of this process while the context lasts.

    `root` holds all it remembers, and is made when it is not there:

        ROOT/hub.sqlite3                      issues, pull requests, labels, comments, and which repository is where
        ROOT/repositories/OWNER/NAME.git      the repositories that were created through the API
        ROOT/hub.lock                         held while it is served

    `port` 0 takes a free one. `repositories` are bare ones that are served in place under the name OWNER/NAME; they are
    remembered. `tokens` None lets every token that is not empty do everything. `checks` are done with what is pushed to
    any repository. `observe` gets every exchange with the API, on the server's thread.

    Entering raises ValueError when a repository cannot be served, and OSError when the port is taken or another hub is
    served from `root`; nothing is served then.
    """

    def __init__(
        self,
        root: Path,
        *,
        port: int = 0,
        repositories: Mapping[str, Path] = _NONE,
        tokens: Mapping[str, Permission | Token] | None = None,
        checks: Iterable[Check] = (),
        observe: "Observe | None" = None,
    ) -> None:
        self._root = root.absolute()
        self._port = port
        self._repositories = dict(repositories)
        self._tokens = tokens
        self._checks = tuple(checks)
        self._observe = observe
        self._drills = Drills()
        self._running = ExitStack()
        self.url = ""
        self.requests: list[tuple[str, str]] = []
        """Method and path of every API request so far, drilled ones too; git and the pages are not in it."""
        self._door: Door
        self._store: Store
        self.admin: Admin
        """What can be told to a hub that is being served, such as archived, renamed, approved: see `admin`."""
        self.ci: CI
        """What checks the commits that are pushed to it: see `checks`."""

    def drill(self, method: str, path: str, trouble: Trouble, *, times: int | None = 1, contains: str = "") -> Drill:
        """Apply `trouble` to the next `times` requests (None: to all) that match, until the result is left or removed.

        `method` may be `*`; `path` is a pattern as `runner.hub.drills` explains; `contains` is text that the body of an
        API request must have.
        """
        return self._drills.add(method, path, trouble, times=times, contains=contains)

    def people(self, full_name: str) -> "Deeds":
        """Return what does things to the issues of OWNER/NAME as its users would, for a hub that is served."""
        from runner.hub.deeds import Deeds

        return Deeds(self._store, full_name)

    def revoke(self, token: str) -> None:
        """Answer whoever comes with this token 401 from now on; for a hub that is served and was given `tokens`."""
        self._door.revoke(token)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._start(stack)
            self._running = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    def _start(self, stack: ExitStack) -> None:
        # Not at the top: `import runner.hub` must not load a web framework.
        from runner.hub.admin import Admin
        from runner.hub.application import application
        from runner.hub.children import Children
        from runner.hub.ci import CI
        from runner.hub.site import Site
        from runner.hub.store import Store

        self._root.mkdir(parents=True, exist_ok=True)
        stack.enter_context(_alone(self._root))
        store = Store(self._root / "hub.sqlite3")
        stack.callback(store.close)
        _adopt(store, self._repositories)
        listener = stack.enter_context(_listener(self._port))
        self.url = f"http://{_HOST}:{listener.getsockname()[1]}"
        self._store = store
        self.admin = Admin(store)
        self._door = Door(self._tokens)
        children = Children()
        self.ci = CI(store, children, self._checks)
        stack.callback(self.ci.close)
        site = Site(
            url=self.url,
            root=self._root,
            store=store,
            door=self._door,
            ci=self.ci,
            children=children,
            requests=self.requests,
            drills=self._drills,
            observe=self._observe,
        )
        server = _server(application(site))
        site.connections.watch(server.server_state.connections)
        stack.callback(_run(server, listener, children))
        stack.callback(self._drills.remove_all)  # what a drill delays would keep the server from ending


def serve(
    root: Path,
    *,
    port: int = 0,
    repositories: Mapping[str, Path] = _NONE,
    tokens: Mapping[str, Permission | Token] | None = None,
    checks: Iterable[Check] = (),
    ready: Callable[[str], None],
) -> None:
    """Serve a hub until SIGINT or SIGTERM comes; for the main thread only.

    Arguments and errors are those of `Hub`. `ready` is called once with the address, when the hub answers there.
    """
    asked_to_stop = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        asked_to_stop.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with Hub(root, port=port, repositories=repositories, tokens=tokens, checks=checks) as hub:
            ready(hub.url)
            asked_to_stop.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _adopt(store: "Store", repositories: Mapping[str, Path]) -> None:
    """Remember repositories that are used in place, all or none; every one remembered must still be there."""
    from runner.hub.bare import BareRepository

    with store.transaction():
        for name, path in repositories.items():
            _adopt_one(store, name, path.resolve())
        for repository in store.repositories.all():
            if not BareRepository(repository.path).is_bare():
                raise ValueError(
                    f"{repository.full_name} was served from {repository.path}, which is no bare repository any more: "
                    f"put it back, or name its new place with --repository {repository.full_name}=PATH"
                )


def _adopt_one(store: "Store", full_name: str, path: Path) -> None:
    from runner.hub.bare import BareRepository

    owner, slash, name = full_name.partition("/")
    if not (owner and slash and name) or "/" in name:
        raise ValueError(f"{full_name!r} is not a repository's name: write OWNER/NAME")
    if not BareRepository(path).is_bare():
        raise ValueError(f"{path} is not a bare repository: make one with `git clone --bare` or `git init --bare`")
    known = store.repositories.find(owner, name)
    other = next((one for one in store.repositories.all() if one.path == path), None)
    if other is not None and other != known:
        raise ValueError(f"{path} is served as {other.full_name} already: leave {full_name} out, or use another --root")
    if known is None:
        store.repositories.add(owner, name, path)
    elif known.path != path:
        if BareRepository(known.path).is_bare():
            raise ValueError(
                f"{full_name} is served from {known.path} already: leave {path} out, or use another --root"
            )
        store.repositories.move(known, path)


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Keep every other hub from the directory while the block runs. Raises OSError where one is served from it."""
    with (root / "hub.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(f"another hub is served from {root}: end it, or use another --root") from None
        yield


def _listener(port: int) -> socket.socket:
    # With the protocol spelled out, asyncio sends small answers at once instead of after Nagle's 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((_HOST, port))
    except OSError as error:
        listener.close()
        raise OSError(f"cannot listen on {_HOST}:{port} ({error.strerror}): choose another --port, or 0") from error
    return listener


def _server(served: object) -> "uvicorn.Server":
    import uvicorn

    options = uvicorn.Config(
        served,  # type: ignore[arg-type]  # Starlette's and uvicorn's names for an ASGI application differ
        lifespan="off",
        ws="none",
        loop="asyncio",
        http="h11",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # a client is where its connection comes from
        timeout_graceful_shutdown=_STOP_DEADLINE,
    )
    return uvicorn.Server(options)


def _run(server: "uvicorn.Server", listener: socket.socket, children: "Children") -> Callable[[], None]:
    """Run the server in a thread until the returned function is called; returns when it answers."""
    # Not a daemon: `stop` is what ends it, and waits for it.
    thread = threading.Thread(target=server.run, args=([listener],), name="nightkeep-hub")
    thread.start()

    def stop() -> None:
        server.should_exit = True
        thread.join(_STOP_GRACE)
        children.kill()
        thread.join()

    deadline = time.monotonic() + _START_DEADLINE
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            stop()
            raise RuntimeError("the hub did not start")
        time.sleep(0.005)
    return stop
