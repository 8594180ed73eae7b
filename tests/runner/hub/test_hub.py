"""Starting, stopping and starting again; and the pages."""

import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from github.Repository import Repository

from runner.hub import Check, Hub, Source
from runner.hub.pages import markdown
from tests.runner.hub.conftest import ADMIN, NAME, Client, push_branch, remote
from tests.world import World, git

SERVE = """
import sys
from pathlib import Path
from runner.hub import serve
serve(Path(sys.argv[1]), ready=lambda address: print(address, flush=True))
"""


def page(hub: Hub, path: str) -> str:
    with urlopen(Request(f"{hub.url}{path}")) as response:
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        return str(response.read().decode())


def test_everything_is_there_after_a_restart(world: World, tmp_path: Path, client: Client) -> None:
    push_branch(world, "topic", "topic\n")
    with Hub(tmp_path / "hub", repositories={NAME: world.origin}) as hub:
        widget = client(hub, ADMIN).get_repo(NAME)
        widget.create_issue("Kept", labels=["ready"]).create_comment("kept too")
        widget.create_pull(base="main", head="topic", title="Pull", draft=True)
    with Hub(tmp_path / "hub") as again:
        widget = client(again, ADMIN).get_repo(NAME)
        issue, pull = widget.get_issue(1), widget.get_pull(2)
        assert ([label.name for label in issue.labels], issue.get_comments()[0].body) == (["ready"], "kept too")
        assert (pull.draft, pull.head.sha) == (True, world.on_origin("topic"))
        assert issue.html_url == f"{again.url}/{NAME}/issues/1"


def test_a_created_repository_lies_under_the_root(world: World, tmp_path: Path, client: Client) -> None:
    with Hub(tmp_path / "hub") as hub:
        made = client(hub, "any").get_user().create_repo("fresh", description="new")
        assert (made.full_name, made.default_branch, made.clone_url) == (
            "nightkeep/fresh",
            "main",
            f"{hub.url}/nightkeep/fresh.git",
        )
        git(world.launch, "push", "-q", remote(hub, "any", "nightkeep/fresh"), "main")
        assert made.get_branch("main").commit.sha == world.on_origin("main")
    path = tmp_path / "hub" / "repositories" / "nightkeep" / "fresh.git"
    assert git(path, "rev-parse", "main") == world.on_origin("main")


@pytest.mark.parametrize("name", ["widget", "a/b/c", "/x"])
def test_a_repository_needs_a_whole_name(world: World, tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="write OWNER/NAME"), Hub(tmp_path / "hub", repositories={name: world.origin}):
        pass


def test_what_is_not_a_bare_repository_is_not_served(world: World, tmp_path: Path) -> None:
    for path in (world.launch, world.launch / ".git", world.origin / "refs", tmp_path / "nothing"):
        with pytest.raises(ValueError, match="not a bare repository"), Hub(tmp_path, repositories={NAME: path}):
            pass


def test_a_name_keeps_its_repository(world: World, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(world.origin), "other.git")
    root = tmp_path / "hub"
    with Hub(root, repositories={NAME: world.origin}):
        pass
    with pytest.raises(ValueError, match="already"), Hub(root, repositories={NAME: tmp_path / "other.git"}):
        pass
    with pytest.raises(ValueError, match="already"), Hub(root, repositories={"acme/second": world.origin}):
        pass


def test_a_repository_that_moved_is_named_and_taken_from_its_new_place(world: World, tmp_path: Path) -> None:
    root, moved = tmp_path / "hub", tmp_path / "moved.git"
    with Hub(root, repositories={NAME: world.origin}):
        pass
    world.origin.rename(moved)
    with pytest.raises(ValueError, match=f"--repository {NAME}=PATH"), Hub(root):
        pass
    with Hub(root, repositories={NAME: moved}) as hub:
        assert "refs/heads/main" in git(tmp_path, "ls-remote", remote(hub))


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=rf"cannot listen on 127.0.0.1:{port}"), Hub(tmp_path, port=port):
            pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_quietly(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-c", SERVE, str(tmp_path / "hub")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with urlopen(address) as response:
            assert response.status == 200
        process.send_signal(number)
        assert process.communicate() == ("", "")
        assert process.returncode == 0


def test_importing_it_loads_no_web_framework() -> None:
    # What is loaded before counts for nothing: coverage, where it is on, brings modules of its own.
    script = (
        "import sys; before = set(sys.modules); import runner.hub; "
        "print({'starlette', 'uvicorn', 'graphql', 'sqlite3'} & (set(sys.modules) - before))"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "set()\n"


def test_pages_show_issues_and_pull_requests(hub: Hub, world: World, widget: Repository) -> None:
    made = push_branch(world, "topic", "topic\n")
    widget.create_issue("<b>Bold</b>", body="Some *text*.", labels=["ready"]).create_comment("A comment.")
    widget.create_pull(base="main", head="topic", title="Pull", draft=True)
    issue, pull = page(hub, f"/{NAME}/issues/1"), page(hub, f"/{NAME}/pull/2")
    for expected in ("&lt;b&gt;Bold&lt;/b&gt;", "<em>text</em>", "state open", "ready", "A comment."):
        assert expected in issue
    for expected in ("state draft", "topic</code> → <code>main", made):
        assert expected in pull
    assert f'href="/{NAME}/pull/2"' in page(hub, f"/{NAME}")
    assert f'href="/{NAME}"' in page(hub, "/")
    assert "prefers-color-scheme" in page(hub, "/hub.css")


def test_the_page_of_a_pull_request_shows_what_it_proposes(hub: Hub, world: World, widget: Repository) -> None:
    hub.ci.add(NAME, Check("good"))
    hub.ci.add(NAME, Check("<bad>", conclusions=("timed_out",)))
    hub.ci.add(NAME, Check("slow", conclusions=(None,), source=Source.STATUS))
    made = push_branch(world, "topic", "one\ntwo\n")
    pull = widget.create_pull(base="main", head="topic", title="Pull")
    shown = page(hub, f"/{NAME}/pull/1")
    for expected in (
        "state pending'>unstable",
        "state open'>success",
        "state failed'>timed out",
        "&lt;bad&gt;",
        "state pending'>pending",
        f"<code title='{made}'>{made[:10]}</code> write one",
        "<code>a.txt</code></td><td class='number'>+2</td><td class='number'>-1</td>",
    ):
        assert expected in shown, shown
    pull.merge()
    assert f"Merged by nightkeep, {widget.get_pull(1).raw_data['merged_at']}" in page(hub, f"/{NAME}/pull/1")


def test_the_page_says_what_is_in_the_way(hub: Hub, world: World, widget: Repository) -> None:
    push_branch(world, "topic", "topic\n")
    pull = widget.create_pull(base="main", head="topic", title="Pull")
    assert "It can be merged." in page(hub, f"/{NAME}/pull/1")
    assert "No check has appeared." in page(hub, f"/{NAME}/pull/1")
    hub.admin.add_rule(NAME, "main", "pull_request")
    assert "At least 1 approving review is required" in page(hub, f"/{NAME}/pull/1")
    pull.edit(state="closed")
    assert "closed without being merged" in page(hub, f"/{NAME}/pull/1")


def test_links_of_checks_lead_to_their_pages(hub: Hub, world: World, widget: Repository) -> None:
    hub.ci.add(NAME, Check("job", conclusions=("failure",), log="<what> it wrote\n"))
    hub.ci.add(NAME, Check("scan", source=Source.APP, log="what it found\n"))
    hub.ci.add(NAME, Check("status", source=Source.STATUS))
    commit = widget.get_branch("main").commit
    [status] = commit.get_combined_status().statuses
    [run] = widget.get_workflow_runs()
    pages = {one.name: one.html_url for one in commit.get_check_runs()} | {"status": status.target_url}
    shown = {name: page(hub, url.removeprefix(hub.url)) for name, url in pages.items()}
    assert "&lt;what&gt; it wrote\n" in shown["job"]
    assert "##[error]Process completed with exit code 1." in shown["job"]
    assert "<pre>what it found\n</pre>" in shown["scan"]
    assert "It has written nothing." in shown["status"]
    assert pages["job"].removeprefix(hub.url) in page(hub, run.html_url.removeprefix(hub.url))


def test_pages_that_are_not_there(hub: Hub) -> None:
    checks = (f"/{NAME}/runs/9", f"/{NAME}/actions/runs/9", "/acme/nothing/runs/9", "/acme/nothing/actions/runs/9")
    for path in ("/acme/nothing", f"/{NAME}/issues/9", "/a/b/c/d", *checks):
        with pytest.raises(HTTPError, match="404") as caught:
            page(hub, path)
        caught.value.close()


def test_a_request_under_another_name_is_turned_away(hub: Hub) -> None:
    with pytest.raises(HTTPError, match="400") as caught:
        urlopen(Request(hub.url, headers={"Host": "evil.example"}))
    caught.value.close()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<!-- nightkeep:note -->\nText", "<p>Text</p>"),
        ("a <!-- b --> c", "<p>a  c</p>"),
        ("<!-- a --> <script>x</script>", "&lt;script&gt;x&lt;/script&gt;"),
        ("<img src=x onerror=y>", "&lt;img src=x onerror=y&gt;"),
        ("`<!-- code -->`", "<p><code>&lt;!-- code --&gt;</code></p>"),
        ("[x](javascript:y)", "<p>[x](javascript:y)</p>"),
        ("<!-- never closed", ""),
    ],
)
def test_markdown_is_shown_and_html_is_not(text: str, shown: str) -> None:
    assert markdown(text) == shown


def test_one_hub_alone_is_served_from_a_directory(tmp_path: Path) -> None:
    with Hub(tmp_path), pytest.raises(OSError, match="another hub is served from"), Hub(tmp_path):
        pass
    with Hub(tmp_path):
        pass
