"""What a Spec run is made of besides what a Run is."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path

from delivery.causes import Code
from delivery.errors import GitHubError
from delivery.issue_url import IssueUrl
from delivery.preflight import Plan, unanswered
from delivery.run import Run
from delivery.spec.run import SpecRun
from runner.conclusion import as_document
from runner.configured import logs_of
from runner.recovery import Recovery
from runner.settings import Settings
from runner.ticket_runs import TicketOf, TicketProcesses
from runner.token import SOURCES
from runner.wiring import RunOptions, Wiring


def told_spec(wiring: Wiring, plan: Plan) -> Plan:
    """Return the plan of a Ticket's Run with the Spec that it is a part of; any other as it is."""
    ticket = wiring.options.ticket()
    if ticket is None:
        return plan
    try:
        return replace(plan, spec=wiring.run.github.issue(ticket.spec))
    except GitHubError as error:
        raise unanswered(error) from error


@contextmanager
def spec_run(wiring: Wiring, run: Run, plan: Plan, settings: Settings, held: Mapping[str, str]) -> Iterator[SpecRun]:
    """Yield the Spec run over the sub-issues of the plan's issue; none of their Runs is left at the block's end."""
    token_file = _readable(wiring.options.token_file)
    tickets = TicketProcesses(
        wiring.url,
        _arguments(wiring.options, plan, token_file),
        held=held if token_file == wiring.options.token_file else {**held, SOURCES[0]: wiring.token.token},
        limit=settings.limits.ticket,
        recover=lambda url: _recovered(wiring, run, url),
        progress=wiring.progress,
        strays=wiring.strays,
    )
    with tickets.ended():
        given = {field.name: getattr(run, field.name) for field in fields(run)}
        yield SpecRun(**given, runs=tickets, parallel=settings.spec.parallel)


def _readable(token_file: Path | None) -> Path | None:
    """Return the token file; None for one that can be read only once, as a shell's <(…) is."""
    return token_file if token_file is not None and token_file.is_file() else None


def _arguments(options: RunOptions, plan: Plan, token_file: Path | None) -> list[str]:
    """Return what each Ticket's command gets: what this one got, and where its pull request is to be merged."""
    ticket = TicketOf(spec=plan.issue.number, base=plan.base, commit=plan.base_commit)
    given = (("--agent", options.agent), ("--token-file", token_file))
    typed = [word for name, value in given if value is not None for word in (name, str(value))]
    mends = [] if options.base_fix is None else ["--base-fix" if options.base_fix else "--no-base-fix"]
    return [*typed, *mends, "--base", plan.branch, "--merge", "--ticket-of", str(ticket)]


def _recovered(wiring: Wiring, run: Run, url: IssueUrl) -> Mapping[str, object] | None:
    """Finish a Ticket's Run that was killed; return its document, None where that could not be done now."""
    recovery = Recovery(
        run=run, logs=logs_of(wiring.machine.settings), repository=wiring.url.repository, report=run.report
    )
    recovered = [one for one in recovery.recover() if one.issue_url == str(url)]
    if not recovered:
        return {"result": "not-begun", "cause": "its process was killed before it had begun", "code": Code.KILLED}
    ended = recovered[-1].outcome
    return as_document(ended) if ended else None
