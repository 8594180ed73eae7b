"""Whether pickup may take an issue, decided from facts.

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
from delivery.ready_facts import Fact, Facts, Lets, Name, clock, lets, listed, who, why_not, worn
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


def judge(facts: Facts) -> Verdict:
    """Decide whether an issue may be taken, or what must be known for that."""
    told = explain(facts)
    against = next((fact for fact in told if fact.lets is Lets.NO), None)
    if against is not None:
        return PassedOver(against)
    return next_look(facts) or Ready()


def next_look(facts: Facts) -> LookForPullRequest | AskForRole | None:
    """Return what is to be asked next to know every fact, whatever stands in the way; None when all are known."""
    unknown = next((fact for fact in explain(facts) if fact.lets is Lets.UNKNOWN), None)
    if unknown is None:
        return None
    return LookForPullRequest() if unknown.name is Name.STARTED else AskForRole(_to_ask(facts))


def explain(facts: Facts) -> tuple[Fact, ...]:
    """Return every fact, in order. What stands in the way is written to follow `#7`."""
    return (
        _open(facts),
        _label(facts),
        _unready(facts),
        _claim(facts),
        _spec(facts),
        _base_fix(facts),
        _blockers(facts),
        _started(facts),
        _tickets(facts),
        _settled(facts),
        _starter(facts),
        _text(facts),
        _wait(facts),
        _limit(facts),
    )


def _open(facts: Facts) -> Fact:
    return Fact(Name.OPEN, lets(facts.issue.is_open), "is open" if facts.issue.is_open else "is closed")


def _label(facts: Facts) -> Fact:
    if facts.vanished:
        return Fact(Name.LABEL, Lets.YES, "was taken when it was ready")
    found = worn(facts.issue.labels, facts.rules.ready)
    return Fact(Name.LABEL, lets(found), f"is labelled {found[0]}" if found else f"is not labelled {facts.rules.ready}")


def _unready(facts: Facts) -> Fact:
    found = worn(facts.issue.labels, *facts.rules.unready)
    return Fact(
        Name.UNREADY,
        lets(not found),
        f"is labelled {', '.join(found)}" if found else "has no label that is for people",
    )


def _claim(facts: Facts) -> Fact:
    if facts.holder:
        return Fact(Name.CLAIM, Lets.NO, f"is taken by {facts.holder}")
    if facts.vanished:
        gone = facts.vanished
        return Fact(Name.CLAIM, Lets.YES, f"was taken by run {gone.run} on {gone.host}, which gives no sign of life")
    found = worn(facts.issue.labels, facts.rules.in_progress)
    return Fact(Name.CLAIM, lets(not found), f"is labelled {found[0]}" if found else "is taken by nobody")


def _spec(facts: Facts) -> Fact:
    parent = facts.issue.parent
    if parent is None:
        return Fact(Name.SPEC, Lets.YES, "is no sub-issue")
    return Fact(Name.SPEC, Lets.NO, f"is a sub-issue of {parent.name_in(facts.repository)}, and is worked on with it")


def _base_fix(facts: Facts) -> Fact:
    found = worn(facts.issue.labels, BASE_FIX)
    why = f"is labelled {found[0]}, and is worked on by the Run that needs it" if found else "is no Base fix"
    return Fact(Name.BASE_FIX, lets(not found), why)


def _blockers(facts: Facts) -> Fact:
    issue = facts.issue
    open_ones = [one for one in issue.blockers if one.is_open]
    said = []
    if open_ones:
        said.append(f"is blocked by {listed(facts, open_ones)}")
    if issue.unseen_blockers:
        many = "1 issue" if issue.unseen_blockers == 1 else f"{issue.unseen_blockers} issues"
        said.append(f"is blocked by {many} that the token may not see")
    if not said:
        closed = f"; {listed(facts, issue.blockers)} closed" if issue.blockers else ""
        return Fact(Name.BLOCKERS, Lets.YES, f"is blocked by no open issue{closed}")
    if facts.cycle:
        said.append(f"waits for itself ({' waits for '.join(ring_of(facts.cycle))}): take one of the links away")
    return Fact(Name.BLOCKERS, Lets.NO, ", and ".join(said))


def _started(facts: Facts) -> Fact:
    if facts.holder or worn(facts.issue.labels, facts.rules.in_progress):
        return _moot(Name.STARTED, Name.CLAIM)
    if facts.vanished:
        return Fact(Name.STARTED, Lets.YES, "was started by that run, whose work is gone on from")
    branches = sorted(one for one in facts.branches if branch_number(facts.issue.number, one) is not None)
    remedy = "a person goes on with it: nightkeep run"
    if branches:
        return Fact(Name.STARTED, Lets.NO, f"has been started, {branches[0]} is on origin; {remedy}")
    if facts.pull_request:
        return Fact(Name.STARTED, Lets.NO, f"has been started, {facts.pull_request} is from its branch; {remedy}")
    if facts.pull_request is None:
        return Fact(Name.STARTED, Lets.UNKNOWN, "has no branch on origin; whether it has a pull request was not asked")
    return Fact(Name.STARTED, Lets.YES, "has not been started: no branch and no pull request")


def _tickets(facts: Facts) -> Fact:
    issue = facts.issue
    if not issue.tickets:
        return Fact(Name.TICKETS, Lets.YES, "has no sub-issues")
    still = issue.tickets - issue.tickets_closed
    if not still:
        return Fact(Name.TICKETS, Lets.NO, "has sub-issues, and all of them are closed")
    return Fact(Name.TICKETS, Lets.YES, f"has {still} open sub-issue{'' if still == 1 else 's'} of {issue.tickets}")


def _settled(facts: Facts) -> Fact:
    labelled = _word(facts)
    moments = [moment for moment in (labelled.at if labelled else None, facts.issue.linked_at) if moment]
    last = max(moments, default=facts.issue.created_at)
    until = last + facts.rules.settle
    if facts.now < until:
        return Fact(
            Name.SETTLED,
            Lets.NO,
            f"is not settled: labels or links changed at {clock(last)}; ready at {clock(until)}",
        )
    return Fact(Name.SETTLED, Lets.YES, f"is settled: nobody has changed labels or links since {clock(last)}")


def _moot(name: Name, because: Name) -> Fact:
    return Fact(name, Lets.MOOT, f"not asked, see {because}")


def _is_labelled(facts: Facts) -> bool:
    return facts.vanished is not None or bool(worn(facts.issue.labels, facts.rules.ready))


def _starter(facts: Facts) -> Fact:
    if not _is_labelled(facts):
        return _moot(Name.STARTER, Name.LABEL)
    if facts.vanished:
        # Only who may push can make a claim.
        return Fact(Name.STARTER, Lets.YES, f"was taken at {clock(facts.vanished.since)} by who may")
    labelled = _word(facts)
    if labelled is None:
        return Fact(Name.STARTER, Lets.NO, f"shows nobody who labelled it {facts.rules.ready}; label it anew")
    said = f"was labelled {facts.rules.ready} by {who(labelled.actor)}"
    match may_start(labelled.actor, facts.rules.bots, facts.roles):
        case None:
            return Fact(Name.STARTER, Lets.UNKNOWN, f"{said}; what they may do here was not asked")
        case True:
            return Fact(Name.STARTER, Lets.YES, f"{said}, who may start work here")
        case False:
            return Fact(Name.STARTER, Lets.NO, f"{said}, {why_not(labelled.actor)}")


def _text(facts: Facts) -> Fact:
    """Whoever may not write here must not change what was let through; whoever labelled has seen what came before."""
    if not _is_labelled(facts):
        return _moot(Name.TEXT, Name.LABEL)
    labelled = _word(facts)
    changes = changes_since(labelled, facts.issue) if labelled else ()
    known = [(change, may_start(change.actor, facts.rules.bots, facts.roles)) for change in changes]
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


def _wait(facts: Facts) -> Fact:
    labelled = None if facts.vanished else _word(facts)
    tries = tuple(moment for moment in facts.tries if labelled is None or moment > labelled.at)
    until = waits_until(tries)
    if until is None:
        return Fact(Name.WAIT, Lets.YES, "has had no Run that made nothing since it was labelled")
    runs = "its last Run" if len(tries) == 1 else f"its last {len(tries)} Runs"
    if facts.now < until:
        return Fact(
            Name.WAIT, Lets.NO, f"waits until {clock(until)}, because {runs} made nothing; labelled anew it does not"
        )
    return Fact(
        Name.WAIT, Lets.YES, f"has waited long enough: {runs} made nothing, the last one at {clock(max(tries))}"
    )


def _limit(facts: Facts) -> Fact:
    if facts.vanished:
        return Fact(Name.LIMIT, Lets.YES, "is none more that is worked on")
    return Fact(Name.LIMIT, lets(not facts.crowd), facts.crowd or f"fewer than {facts.rules.limit} are worked on")


def may_start(login: str, bots: tuple[str, ...], roles: Mapping[str, Role]) -> bool | None:
    """Whether somebody's word starts work: write access, or for a bot its place in the list; None while not asked."""
    if not login:
        return False
    if login.endswith("[bot]"):
        return login.lower() in {bot.lower() for bot in bots}
    role = roles.get(login.lower())
    return None if role is None else role.may_write


def let_at(facts: Facts) -> datetime | None:
    """Return when somebody let the issue be taken, and with it its Tickets as they were then; None for nobody."""
    if facts.vanished:
        earlier = labelling_before(facts.issue.deeds, facts.rules.ready, facts.viewer)
        return min(earlier.at, facts.vanished.since) if earlier else facts.vanished.since
    word = _word(facts)
    return word.at if word else None


def _word(facts: Facts) -> Labelling | None:
    """Return whose word let the issue be taken, and when; what came after it must be by who may write, too."""
    if facts.vanished:
        return Labelling("", facts.vanished.since)
    return labelling(facts.issue.deeds, facts.rules.ready, facts.viewer)


def _to_ask(facts: Facts) -> str:
    labelled = _word(facts)
    changes: tuple[Deed, ...] = changes_since(labelled, facts.issue) if labelled else ()
    logins = [*([labelled.actor] if labelled and labelled.actor else []), *(change.actor for change in changes)]
    return next(login for login in logins if may_start(login, facts.rules.bots, facts.roles) is None)
