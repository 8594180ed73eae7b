"""The command line. Each command imports what it needs when it runs, so that `--help` is quick."""

from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from runner.cli_options import RUN_EPILOG, AsJson, Base, IssueAddress, Merges, Parallel, TokenFile
from runner.pickup_cli import explain, pickup, status
from runner.rescue_cli import gc, rescue, worktrees

_ORDER = (
    "run",
    "pickup",
    "explain",
    "status",
    "prompt",
    "doctor",
    "config",
    "logs",
    "recover",
    "worktrees",
    "rescue",
    "gc",
    "hub",
    "demo",
)


class _InOrder(TyperGroup):
    """Lists the commands as they are used, which is not how typer keeps them: groups behind all others."""

    def list_commands(self, ctx: object) -> list[str]:
        """Return the names in their order."""
        return sorted(self.commands, key=_ORDER.index)


app = typer.Typer(
    cls=_InOrder,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",  # paragraphs are joined and wrapped to the terminal
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_config = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
app.add_typer(_config, name="config", help="Show the configuration, or what is wrong with it.")
app.add_typer(worktrees, name="worktrees", help="See which worktrees of runs there are, and release what was retained.")
app.add_typer(rescue, name="rescue", help="See what is kept of runs, get it back, or be rid of it.")
app.command()(gc)
app.command(epilog=RUN_EPILOG)(pickup)
app.command()(explain)
app.command()(status)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

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


_Agent = Annotated[
    str | None,
    typer.Option(
        help="The agent's command, by default the configuration's. Split as a shell would, run without one: "
        "for && or | write sh -c '…'. A relative path is looked up from here."
    ),
]
_FixesBase = Annotated[
    bool | None,
    typer.Option("--base-fix/--no-base-fix", help="Have a Base branch whose checks fail mended, by a Run of its own."),
]
_ChecksStarter = Annotated[
    bool,
    typer.Option(
        "--check-starter", help="Skip an issue unless somebody with write access labelled it, as pickup does."
    ),
]


@app.command(epilog=RUN_EPILOG)
def run(
    context: typer.Context,
    issue_url: IssueAddress,
    agent: _Agent = None,
    base: Base = None,
    token_file: TokenFile = None,
    merge: Merges = None,
    base_fix: _FixesBase = None,
    parallel: Parallel = None,
    check_starter: _ChecksStarter = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of the URL.")] = False,
    # How a Run starts another one.
    child: Annotated[bool, typer.Option("--child", hidden=True)] = False,
    ticket_of: Annotated[int | None, typer.Option(hidden=True)] = None,
    configured_by: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Work on one issue in a worktree of its own, and deliver a pull request that is mergeable and green, or merged.

    Run it in a clone of the issue's repository. The agent works in a directory beside the clone, which is removed
    once everything in it is safe. Conflicts and failing checks go back to the agent, a few times. When the Run fails,
    the work is pushed to the Issue branch, the pull request becomes a draft, and one comment says what went wrong,
    where the work is and how to go on.

    An issue that has sub-issues is worked on sub-issue by sub-issue, each a command of its own that merges into one
    branch, in the order that their blocked-by links ask for; then the whole is reviewed, and delivered.
    """
    from delivery.child_runs import ConfiguredBy
    from runner.run_command import run_issue
    from runner.run_options import RunOptions

    options = RunOptions(
        issue_url=issue_url,
        agent=agent,
        base=base,
        token_file=token_file,
        as_json=as_json,
        merge=merge,
        base_fix=base_fix,
        parallel=parallel,
        is_child=child,
        ticket_of=ticket_of,
        configured_by=ConfiguredBy.parse(configured_by) if configured_by else None,
        checks_starter=check_starter,
    )
    raise typer.Exit(run_issue(options, context.obj))


@app.command()
def prompt(
    context: typer.Context,
    issue_url: IssueAddress,
    base: Base = None,
    token_file: TokenFile = None,
) -> None:
    """Print what an agent would be told if `nightkeep run` were started on the issue now. Claims nothing.

    Run it in a clone of the issue's repository. Exit status: 0, or as that of `nightkeep run`.
    """
    from runner.prompt_command import print_prompt
    from runner.run_options import RunOptions

    options = RunOptions(issue_url=issue_url, agent=None, base=base, token_file=token_file, as_json=False)
    raise typer.Exit(print_prompt(options, context.obj))


@app.command()
def doctor(
    context: typer.Context,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Say what would stop a Run in this clone, or surprise you, each with its remedy.

    Pushes are tried as a dry run: no ref, label or worktree is made. Exit status: 0 without errors, 2 with one.
    """
    from runner.doctor_command import examine_clone

    raise typer.Exit(examine_clone(token_file, context.obj, as_json=as_json))


@app.command()
def logs(
    context: typer.Context,
    issue: Annotated[
        int | None, typer.Argument(help="Show the logs of the newest command on this issue.", min=1)
    ] = None,
    repository: Annotated[
        str | None,
        typer.Option(help="Only its logs. Default: in a clone that repository's, elsewhere all.", metavar="OWNER/NAME"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what there is as JSON; never the text.")] = False,
) -> None:
    """List the logs of this machine, newest first, or print those of the newest command on an issue.

    The Command log is what Nightkeep said and how it ended; the others are what the agent and the steps printed.
    """
    from runner.logs_command import show_logs

    raise typer.Exit(show_logs(issue, repository, context.obj, as_json=as_json))


@app.command()
def recover(
    context: typer.Context,
    *,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Finish what killed runners left unfinished in this clone.

    Work is preserved and pushed, the pull request becomes a draft, the Failure note is written, the issue released if
    nothing was made, and the worktree cleaned up. What somebody is at work on is left alone; twice changes nothing.
    """
    from runner.recover_command import recover as recover_all

    raise typer.Exit(recover_all(context.obj, token_file, as_json=as_json))


@_config.command("show")
def config_show(
    context: typer.Context,
    as_json: AsJson = False,
) -> None:
    """Print each setting, its value and where it came from. Needs no token and no network.

    In a clone the repository's file counts as it was last fetched from origin, on the branch that is checked out.
    """
    from runner.config_command import show_config

    raise typer.Exit(show_config(context.obj, as_json=as_json))


@_config.command("check")
def config_check(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(help="Only this file, as a repository's: before it is committed, say.", metavar="[FILE]"),
    ] = None,
) -> None:
    """Print every problem of the configuration as FILE:LINE: …, and exit 2 if there is one.

    Looks at your own file, the environment and, in a clone, the repository's file as it was last fetched from origin.
    An editor finds most problems while you type: docs/nightkeep.schema.json is the files' JSON schema.
    """
    from runner.config_command import check_config

    raise typer.Exit(check_config(file, context.obj))


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
    check: Annotated[
        list[str] | None,
        typer.Option(
            help="Check every pushed commit: the shell's command runs in a copy of its files, for 10 minutes at most. "
            "May be given again.",
            metavar="NAME=COMMAND",
        ),
    ] = None,
) -> None:
    """Serve a small GitHub on this machine, with issues, pull requests, checks and git over HTTP.

    The first line on standard output is its address. The API is under /api/v3 and /api/graphql, as on GitHub
    Enterprise; issues and pull requests answer with a page. Ctrl-C ends it; the same directory can be served again.
    """
    from runner.hub_command import serve_hub

    raise typer.Exit(serve_hub(root, port, repository or [], token, check or []))


@app.command()
def demo() -> None:
    """Show three Runs in a temporary directory: one delivered, one failed, one interrupted.

    Needs no account, token, agent program or network. Keeps the directory and says how to look at it.
    """
    import signal

    from runner.demo import run_demo

    signal.signal(signal.SIGINT, signal.default_int_handler)  # what the demo has started must be ended
    raise typer.Exit(run_demo())
