"""The command line's part about what runs left: `nightkeep worktrees …`, `nightkeep rescue …` and `nightkeep gc`."""

from pathlib import Path
from typing import Annotated

import typer

from runner.cli_options import AsJson, TokenFile

worktrees = typer.Typer(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
rescue = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})

_RunId = Annotated[str, typer.Argument(help="The run, or the beginning of its ID.", metavar="ID")]
_Offline = Annotated[bool, typer.Option("--offline", help="Do not ask origin.")]


@worktrees.callback()
def worktrees_list(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List the worktrees of the clone's runs: at work, retained and why, orphaned. Changes nothing."""
    if context.invoked_subcommand is None:
        from runner.worktrees_command import show_worktrees

        raise typer.Exit(show_worktrees(context.obj, as_json=as_json))


@worktrees.command("release")
def worktrees_release(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(help="The worktree, as `nightkeep worktrees` lists it.")],
    *,
    agreed: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Let a retained worktree go, after showing what it holds. Nothing is lost by it, and nothing is pushed.

    What origin has is removed; the rest is moved to the rescue store, or kept in rescue refs of the clone, and named.
    Exit status: 0, or 2 when nothing was released.
    """
    from runner.worktrees_command import release_worktree

    raise typer.Exit(release_worktree(path, context.obj, token_file, agreed=agreed, as_json=as_json))


@rescue.command("list")
def rescue_list(
    context: typer.Context, *, token_file: TokenFile = None, offline: _Offline = False, as_json: AsJson = False
) -> None:
    """List what is kept of each run: files in the rescue store, and rescue refs here and on origin."""
    from runner.rescue_command import list_rescued

    raise typer.Exit(list_rescued(context.obj, token_file, offline=offline, as_json=as_json))


@rescue.command("show")
def rescue_show(
    context: typer.Context,
    run_id: _RunId,
    *,
    token_file: TokenFile = None,
    offline: _Offline = False,
    as_json: AsJson = False,
) -> None:
    """Show everything that is kept of one run, why, and the git command that brings each part of it back."""
    from runner.rescue_command import show_rescued

    raise typer.Exit(show_rescued(run_id, context.obj, token_file, offline=offline, as_json=as_json))


@rescue.command("restore")
def rescue_restore(
    context: typer.Context,
    run_id: _RunId,
    paths: Annotated[
        list[str] | None, typer.Argument(help="Only these, as paths in the worktree. Default: all.", metavar="[PATH]…")
    ] = None,
    *,
    to: Annotated[
        Path | None, typer.Option(help="Where to put them. Default: the clone's checkout.", metavar="DIRECTORY")
    ] = None,
) -> None:
    """Copy files of a run from the rescue store to where they were, or to a directory.

    Nothing is overwritten: when anything else is in the way, all of that is named and nothing is written. The store
    keeps them. Exit status: 0, or 2 when nothing was restored.
    """
    from runner.rescue_command import restore_rescued

    raise typer.Exit(restore_rescued(run_id, paths or [], to, context.obj))


@rescue.command("drop")
def rescue_drop(
    context: typer.Context,
    run_id: _RunId,
    *,
    remote: Annotated[bool, typer.Option("--remote", help="Delete its rescue refs on origin, too.")] = False,
    token_file: TokenFile = None,
) -> None:
    """Delete what is kept of a run on this machine: its files in the store and its rescue refs in this clone.

    Asks nothing. A run that may be at work, or whose worktree is still there, is refused.
    """
    from runner.rescue_command import drop_rescued

    raise typer.Exit(drop_rescued(run_id, context.obj, token_file, remote=remote))


def gc(
    context: typer.Context,
    *,
    rehearsal: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Delete what is kept of runs beyond the configured bounds, and name it.

    That is what is older than rescue.keep-days, then the oldest while all is more than rescue.max-size; never the only
    copy of a younger Failed run. With a token for GitHub also the rescue refs of closed pull requests.
    """
    from runner.gc_command import collect_garbage

    raise typer.Exit(collect_garbage(context.obj, token_file, rehearsal=rehearsal, as_json=as_json))
