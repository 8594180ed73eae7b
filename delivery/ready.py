"""Whether pickup may take an issue, decided from prospect.

All facts about an issue are told in one order; the first that stands in the way is the reason for which it is passed
over. A fact that costs a question to GitHub is asked for only when nothing else stands in the way.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from delivery.base_fix_choice import BASE_FIX
from delivery.branches import branch_number
from delivery.cycles import ring_of
from delivery.github import Deed, Role
from delivery.labelling import Labelling, changes_since, labelling, labelling_before
from delivery.ready_facts import Fact, Lets, Name, Prospect, clock, lets, listed, who, why_not, worn
from delivery.tries import waits_until


@dataclass(frozen=True, slots=True)
class Ready:
    """The issue may be taken."""


@dataclass(frozen=True, slots=True)
class PassedOver:
    """It may not be taken, because of `fact`."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class LookForPullRequest:
    """Whether it has a pull request must be known first."""


@dataclass(frozen=True, slots=True)
class AskForRole:
    """What that user may do must be known first."""

    login: str


Verdict = Ready | PassedOver | LookForPullRequest | AskForRole


def judge(prospect: Prospect) -> Verdict:
    """Decide whether an issue may be taken, or what must be known for that."""
    told = explain(prospect)
    against = next((fact for fact in told if fact.lets is Lets.NO), None)
    if against is not None:
        return PassedOver(against)
    return next_look(prospect) or Ready()


def next_look(prospect: Prospect) -> LookForPullRequest | AskForRole | None:
    """Return what is to be asked next to know every fact, whatever stands in the way; None when all are known."""
    unknown = next((fact for fact in explain(prospect) if fact.lets is Lets.UNKNOWN), None)
    if unknown is None:
        return None
    return LookForPullRequest() if unknown.name is Name.STARTED else AskForRole(_to_ask(prospect))


def explain(prospect: Prospect) -> tuple[Fact, ...]:
    """Return every fact, in order. What stands in the way is written to follow `#7`."""
    return (
        _open(prospect),
        _label(prospect),
        _unready(prospect),
        _claim(prospect),
        _spec(prospect),
        _base_fix(prospect),
        _blockers(prospect),
        _started(prospect),
        _tickets(prospect),
        _settled(prospect),
        _starter(prospect),
        _text(prospect),
        _wait(prospect),
        _limit(prospect),
    )


def _open(prospect: Prospect) -> Fact:
    return Fact(Name.OPEN, lets(prospect.issue.is_open), "is open" if prospect.issue.is_open else "is closed")


def _label(prospect: Prospect) -> Fact:
    if prospect.vanished:
        return Fact(Name.LABEL, Lets.YES, "was taken when it was ready")
    found = worn(prospect.issue.labels, prospect.rules.ready)
    return Fact(
        Name.LABEL, lets(found), f"is labelled {found[0]}" if found else f"is not labelled {prospect.rules.ready}"
    )


def _unready(prospect: Prospect) -> Fact:
    found = worn(prospect.issue.labels, *prospect.rules.unready)
    return Fact(
        Name.UNREADY,
        lets(not found),
        f"is labelled {', '.join(found)}" if found else "has no label that is for people",
    )


def _claim(prospect: Prospect) -> Fact:
    if prospect.holder:
        return Fact(Name.CLAIM, Lets.NO, f"is taken by {prospect.holder}")
    if prospect.vanished:
        gone = prospect.vanished
        return Fact(Name.CLAIM, Lets.YES, f"was taken by run {gone.run} on {gone.host}, which gives no sign of life")
    found = worn(prospect.issue.labels, prospect.rules.in_progress)
    return Fact(Name.CLAIM, lets(not found), f"is labelled {found[0]}" if found else "is taken by nobody")


def _spec(prospect: Prospect) -> Fact:
    parent = prospect.issue.parent
    if parent is None:
        return Fact(Name.SPEC, Lets.YES, "is no sub-issue")
    return Fact(
        Name.SPEC, Lets.NO, f"is a sub-issue of {parent.name_in(prospect.repository)}, and is worked on with it"
    )


def _base_fix(prospect: Prospect) -> Fact:
    found = worn(prospect.issue.labels, BASE_FIX)
    why = f"is labelled {found[0]}, and is worked on by the Run that needs it" if found else "is no Base fix"
    return Fact(Name.BASE_FIX, lets(not found), why)


def _blockers(prospect: Prospect) -> Fact:
    issue = prospect.issue
    open_ones = [one for one in issue.blockers if one.is_open]
    said = []
    if open_ones:
        said.append(f"is blocked by {listed(prospect, open_ones)}")
    if issue.unseen_blockers:
        many = "1 issue" if issue.unseen_blockers == 1 else f"{issue.unseen_blockers} issues"
        said.append(f"is blocked by {many} that the token may not see")
    if not said:
        closed = f"; {listed(prospect, issue.blockers)} closed" if issue.blockers else ""
        return Fact(Name.BLOCKERS, Lets.YES, f"is blocked by no open issue{closed}")
    if prospect.cycle:
        said.append(f"waits for itself ({' waits for '.join(ring_of(prospect.cycle))}): take one of the links away")
    return Fact(Name.BLOCKERS, Lets.NO, ", and ".join(said))


def _started(prospect: Prospect) -> Fact:
    if prospect.holder or worn(prospect.issue.labels, prospect.rules.in_progress):
        return _moot(Name.STARTED, Name.CLAIM)
    if prospect.vanished:
        return Fact(Name.STARTED, Lets.YES, "was started by that run, whose work is gone on from")
    branches = sorted(one for one in prospect.branches if branch_number(prospect.issue.number, one) is not None)
    remedy = "a person goes on with it: nightkeep run"
    if branches:
        return Fact(Name.STARTED, Lets.NO, f"has been started, {branches[0]} is on origin; {remedy}")
    if prospect.pull_request:
        return Fact(Name.STARTED, Lets.NO, f"has been started, {prospect.pull_request} is from its branch; {remedy}")
    if prospect.pull_request is None:
        return Fact(Name.STARTED, Lets.UNKNOWN, "has no branch on origin; whether it has a pull request was not asked")
    return Fact(Name.STARTED, Lets.YES, "has not been started: no branch and no pull request")


def _tickets(prospect: Prospect) -> Fact:
    issue = prospect.issue
    if not issue.tickets:
        return Fact(Name.TICKETS, Lets.YES, "has no sub-issues")
    still = issue.tickets - issue.tickets_closed
    if not still:
        return Fact(Name.TICKETS, Lets.NO, "has sub-issues, and all of them are closed")
    return Fact(Name.TICKETS, Lets.YES, f"has {still} open sub-issue{'' if still == 1 else 's'} of {issue.tickets}")


def _settled(prospect: Prospect) -> Fact:
    labelled = _word(prospect)
    moments = [moment for moment in (labelled.at if labelled else None, prospect.issue.linked_at) if moment]
    last = max(moments, default=prospect.issue.created_at)
    until = last + prospect.rules.settle
    if prospect.now < until:
        return Fact(
            Name.SETTLED,
            Lets.NO,
            f"is not settled: labels or links changed at {clock(last)}; ready at {clock(until)}",
        )
    return Fact(Name.SETTLED, Lets.YES, f"is settled: nobody has changed labels or links since {clock(last)}")


def _moot(name: Name, because: Name) -> Fact:
    return Fact(name, Lets.MOOT, f"not asked, see {because}")


def _is_labelled(prospect: Prospect) -> bool:
    return prospect.vanished is not None or bool(worn(prospect.issue.labels, prospect.rules.ready))


def _starter(prospect: Prospect) -> Fact:
    if not _is_labelled(prospect):
        return _moot(Name.STARTER, Name.LABEL)
    if prospect.vanished:
        # Only who may push can make a claim.
        return Fact(Name.STARTER, Lets.YES, f"was taken at {clock(prospect.vanished.since)} by who may")
    labelled = _word(prospect)
    if labelled is None:
        return Fact(Name.STARTER, Lets.NO, f"shows nobody who labelled it {prospect.rules.ready}; label it anew")
    said = f"was labelled {prospect.rules.ready} by {who(labelled.actor)}"
    match may_start(labelled.actor, prospect.rules.bots, prospect.roles):
        case None:
            return Fact(Name.STARTER, Lets.UNKNOWN, f"{said}; what they may do here was not asked")
        case True:
            return Fact(Name.STARTER, Lets.YES, f"{said}, who may start work here")
        case False:
            return Fact(Name.STARTER, Lets.NO, f"{said}, {why_not(labelled.actor)}")


def _text(prospect: Prospect) -> Fact:
    """Whoever may not write here must not change what was let through; whoever labelled has seen what came before."""
    if not _is_labelled(prospect):
        return _moot(Name.TEXT, Name.LABEL)
    labelled = _word(prospect)
    changes = changes_since(labelled, prospect.issue) if labelled else ()
    known = [(change, may_start(change.actor, prospect.rules.bots, prospect.roles)) for change in changes]
    for change, allowed in known:
        if allowed is False:
            by = f"{who(change.actor)}, {why_not(change.actor)}"
            return Fact(
                Name.TEXT, Lets.NO, f"had its {change.what.part} changed after it was labelled, by {by}; label it anew"
            )
    if any(allowed is None for _, allowed in known):
        return Fact(
            Name.TEXT,
            Lets.UNKNOWN,
            "was changed after it was labelled, by somebody of whom nobody asked what they may do",
        )
    return Fact(
        Name.TEXT, Lets.YES, "has the text that it was labelled with" if not known else "was changed by who may"
    )


def _wait(prospect: Prospect) -> Fact:
    labelled = None if prospect.vanished else _word(prospect)
    tries = tuple(moment for moment in prospect.tries if labelled is None or moment > labelled.at)
    until = waits_until(tries)
    if until is None:
        return Fact(Name.WAIT, Lets.YES, "has had no Run that made nothing since it was labelled")
    runs = "its last Run" if len(tries) == 1 else f"its last {len(tries)} Runs"
    if prospect.now < until:
        return Fact(
            Name.WAIT, Lets.NO, f"waits until {clock(until)}, because {runs} made nothing; labelled anew it does not"
        )
    return Fact(
        Name.WAIT, Lets.YES, f"has waited long enough: {runs} made nothing, the last one at {clock(max(tries))}"
    )


def _limit(prospect: Prospect) -> Fact:
    if prospect.vanished:
        return Fact(Name.LIMIT, Lets.YES, "is none more that is worked on")
    return Fact(
        Name.LIMIT, lets(not prospect.crowd), prospect.crowd or f"fewer than {prospect.rules.limit} are worked on"
    )


def may_start(login: str, bots: tuple[str, ...], roles: Mapping[str, Role]) -> bool | None:
    """Whether somebody's word starts work: write access, or for a bot its place in the list; None while not asked."""
    if not login:
        return False
    if login.endswith("[bot]"):
        return login.lower() in {bot.lower() for bot in bots}
    role = roles.get(login.lower())
    return None if role is None else role.may_write


def let_at(prospect: Prospect) -> datetime | None:
    """Return when somebody let the issue be taken, and with it its Tickets as they were then; None for nobody."""
    if prospect.vanished:
        earlier = labelling_before(prospect.issue.deeds, prospect.rules.ready, prospect.viewer)
        return min(earlier.at, prospect.vanished.since) if earlier else prospect.vanished.since
    word = _word(prospect)
    return word.at if word else None


def _word(prospect: Prospect) -> Labelling | None:
    """Return whose word let the issue be taken, and when; what came after it must be by who may write, too."""
    if prospect.vanished:
        return Labelling("", prospect.vanished.since)
    return labelling(prospect.issue.deeds, prospect.rules.ready, prospect.viewer)


def _to_ask(prospect: Prospect) -> str:
    labelled = _word(prospect)
    changes: tuple[Deed, ...] = changes_since(labelled, prospect.issue) if labelled else ()
    logins = [*([labelled.actor] if labelled and labelled.actor else []), *(change.actor for change in changes)]
    return next(login for login in logins if may_start(login, prospect.rules.bots, prospect.roles) is None)
