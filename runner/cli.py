"""The command line. Each command imports what it needs when it runs, so that `--help` is quick."""

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_RUN_EPILOG = """\
Exit status: 0 delivered, 1 failed with nothing left only here, 2 not begun, 3 failed with something kept only on this
machine, 4 refused by GitHub's rules, 70 a bug, 128+n ended by signal n. Standard output holds the pull request's URL
and nothing else.
"""


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nightkeep {version('nightkeep')}")
        raise typer.Exit


@app.callback()
def nightkeep(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Run coding agents unattended on GitHub issues, and never lose their work.

    Start with `nightkeep demo`: it needs no account, token, agent or network.
    """


@app.command(epilog=_RUN_EPILOG)
def run(
    context: typer.Context,
    issue_url: Annotated[str, typer.Argument(help="The issue, as https://github.com/OWNER/NAME/issues/7.")],
    agent: Annotated[
        str | None,
        typer.Option(help="The agent's command. Split as a shell would, run without one; the prompt comes on stdin."),
    ] = None,
    base: Annotated[str | None, typer.Option(help="The Base branch. Default: the one that is checked out.")] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="A file with the token. Default: NIGHTKEEP_TOKEN, then GITHUB_TOKEN.", metavar="FILE"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of the URL.")] = False,
) -> None:
    """Work on one issue in a worktree of its own, and deliver a pull request.

    Run it in a clone of the issue's repository. The agent works in a directory beside the clone, which is removed
    once everything in it is safe. When the Run fails, the work is pushed to the Issue branch, the pull request
    becomes a draft, and one comment says what went wrong, where the work is and how to go on.
    """
    from runner.run_command import run_issue
    from runner.wiring import RunOptions

    options = RunOptions(issue_url=issue_url, agent=agent, base=base, token_file=token_file, as_json=as_json)
    raise typer.Exit(run_issue(options, context.obj))


@app.command()
def hub(
    root: Annotated[Path, typer.Option(help="The directory that holds everything; made when missing.")],
    port: Annotated[int, typer.Option(help="The port on 127.0.0.1; 0 takes a free one.", min=0, max=65535)] = 0,
    repository: Annotated[
        list[str] | None,
        typer.Option(
            help="Serve an existing bare repository, in place. May be given again.", metavar="OWNER/NAME=PATH"
        ),
    ] = None,
    token: Annotated[str | None, typer.Option(help="The only token to accept. Default: any that is not empty.")] = None,
) -> None:
    """Serve a small GitHub on this machine, with issues, pull requests and git over HTTP.

    The first line on standard output is its address. The API is under /api/v3 and /api/graphql, as on GitHub
    Enterprise; issues and pull requests answer with a page. Ctrl-C ends it; the same directory can be served again.
    """
    from runner.hub_command import serve_hub

    raise typer.Exit(serve_hub(root, port, repository or [], token))


@app.command()
def demo() -> None:
    """Show three Runs in a temporary directory: one delivered, one failed, one interrupted.

    Needs no account, token, agent program or network. Keeps the directory and says how to look at it.
    """
    import signal

    from runner.demo import run_demo

    signal.signal(signal.SIGINT, signal.default_int_handler)  # what the demo has started must be ended
    raise typer.Exit(run_demo())
