"""The command line's part about what is to be done: `nightkeep pickup`, `nightkeep explain` and `nightkeep status`."""

from typing import Annotated

import typer

from runner.cli_options import AsJson, Base, IssueAddress, Merges, Parallel, TokenFile


def pickup(
    context: typer.Context,
    *,
    agent: Annotated[str | None, typer.Option(help="The agent's command, as for `nightkeep run`.")] = None,
    base: Base = None,
    token_file: TokenFile = None,
    merge: Merges = None,
    parallel: Parallel = None,
    loop: Annotated[bool, typer.Option("--loop", help="Go on with the next pass, until a signal comes.")] = False,
    every: Annotated[
        str | None, typer.Option(help="How long --loop waits between two passes: 90s, 5m (the default), 1h.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document for each pass.")] = False,
) -> None:
    """Take the lowest issue that is ready for an agent, and work on it as `nightkeep run` would.

    Run it in a clone of the repository, from cron or a timer, or with `--loop`. A pass finishes what killed runners
    left, and takes one issue at most. Why each one before it was passed over is said; `nightkeep explain` says more.
    With nothing to do it says so in a line, and exits 0.
    """
    from runner.pickup_command import PickupOptions, pick_up
    from runner.settings import read_duration

    if every and not loop:
        raise typer.BadParameter("it says how long --loop waits; give that as well", param_hint="--every")
    try:
        seconds = read_duration(every or "5m")
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--every") from error
    options = PickupOptions(
        agent=agent,
        base=base,
        token_file=token_file,
        merge=merge,
        parallel=parallel,
        as_json=as_json,
        every=seconds if loop else None,
    )
    raise typer.Exit(pick_up(options, context.obj))


def explain(
    context: typer.Context,
    issue_url: IssueAddress,
    *,
    base: Base = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Say fact by fact whether `nightkeep pickup` may take an issue, and what stands in the way. Changes nothing.

    Run it in a clone of the issue's repository.
    """
    from runner.explain_command import explain_issue

    raise typer.Exit(explain_issue(issue_url, base, token_file, context.obj, as_json=as_json))


def status(
    context: typer.Context,
    *,
    base: Base = None,
    token_file: TokenFile = None,
    once: Annotated[bool, typer.Option("--once", help="Print it once, on a terminal too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what runs, waits, is blocked, has failed or is retained, for the clone's repository. Changes nothing.

    On a terminal it is shown anew every ten seconds, until Ctrl-C.
    """
    from runner.status_command import show_status

    raise typer.Exit(show_status(base, token_file, context.obj, once=once, as_json=as_json))
