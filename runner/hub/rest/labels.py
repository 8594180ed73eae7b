"""Labels of repositories, and of issues and pull requests."""

from starlette.routing import BaseRoute

from runner.hub.access import Permission
from runner.hub.refusal import Refusal, invalid, not_found
from runner.hub.rest.bodies import LabelNames, NewLabel
from runner.hub.rest.call import Answer, Api, Call
from runner.hub.store import Label, Repository

_LABELS = "/repos/{owner}/{repo}/labels"
_ISSUE_LABELS = "/repos/{owner}/{repo}/issues/{number:int}/labels"
_LONGEST_NAME = 50  # characters


def label_routes(api: Api) -> list[BaseRoute]:
    """Return the routes of this module. A label's name may hold any character, a slash too."""
    return [
        api.route("GET", _LABELS, list_labels),
        api.route("POST", _LABELS, create_label, Permission.WRITE),
        api.route("GET", _LABELS + "/{name:path}", get_label),
        api.route("DELETE", _LABELS + "/{name:path}", delete_label, Permission.WRITE),
        api.route("GET", _ISSUE_LABELS, list_issue_labels),
        api.route("POST", _ISSUE_LABELS, add_issue_labels, Permission.TRIAGE),
        api.route("PUT", _ISSUE_LABELS, set_issue_labels, Permission.TRIAGE),
        api.route("DELETE", _ISSUE_LABELS + "/{name:path}", remove_issue_label, Permission.TRIAGE),
    ]


def list_labels(call: Call) -> Answer:
    """All labels of the repository, by name."""
    repository = call.repository()
    return call.paged([call.shapes.label(repository, label) for label in call.store.labels.all(repository.id)])


def create_label(call: Call) -> Answer:
    """A new label; a name that is taken is refused."""
    repository, wanted = call.repository(), call.read(NewLabel, "Label")
    check_label_names([wanted.name])
    label = call.store.labels.add(repository.id, wanted.name, wanted.color, wanted.description)
    if label is None:
        raise invalid("Label", "name", "already_exists")
    return Answer(201, call.shapes.label(repository, label))


def get_label(call: Call) -> Answer:
    """One label."""
    repository = call.repository()
    return Answer(body=call.shapes.label(repository, _label(call, repository)))


def delete_label(call: Call) -> Answer:
    """Remove the label everywhere."""
    call.store.labels.delete(_label(call, call.repository()))
    return Answer(204)


def list_issue_labels(call: Call) -> Answer:
    """The labels of one issue."""
    repository = call.repository()
    return call.paged([call.shapes.label(repository, label) for label in call.issue(repository).labels])


def add_issue_labels(call: Call) -> Answer:
    """Put labels on an issue; unknown ones are created."""
    repository = call.repository()
    issue, names = call.issue(repository), _names(call)
    call.store.labels.attach(repository.id, issue.id, names, call.visitor.login)
    return _labels_of(call, repository, issue.id)


def set_issue_labels(call: Call) -> Answer:
    """Make these the only labels of an issue; unknown ones are created."""
    repository = call.repository()
    issue, names = call.issue(repository), _names(call)
    call.store.labels.replace(repository.id, issue.id, names, call.visitor.login)
    return _labels_of(call, repository, issue.id)


def remove_issue_label(call: Call) -> Answer:
    """Take one label off an issue."""
    repository = call.repository()
    issue, name = call.issue(repository), call.path["name"].casefold()
    label = next((label for label in issue.labels if label.name.casefold() == name), None)
    if label is None:
        raise Refusal(404, "Label does not exist")
    call.store.labels.detach(issue.id, label, call.visitor.login)
    return _labels_of(call, repository, issue.id)


def check_label_names(names: list[str]) -> None:
    """Raise the Refusal for a name that GitHub would not take."""
    if any(not name.strip() or len(name) > _LONGEST_NAME for name in names):
        raise invalid("Label", "name")


def _names(call: Call) -> list[str]:
    """Return the names in the body, which PyGithub sends as a bare list too."""
    given = call.json()
    wrapped = LabelNames.model_validate({"labels": given}) if isinstance(given, list) else None
    names = (wrapped or call.read(LabelNames, "Label")).names()
    check_label_names(names)
    return names


def _label(call: Call, repository: Repository) -> Label:
    label = call.store.labels.find(repository.id, call.path["name"])
    if label is None:
        raise not_found()
    return label


def _labels_of(call: Call, repository: Repository, issue: int) -> Answer:
    return Answer(body=[call.shapes.label(repository, label) for label in call.store.labels.on_issue(issue)])
