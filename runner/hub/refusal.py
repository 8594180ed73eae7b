"""An answer of GitHub's that is not the one that was asked for."""

from typing import Any

from runner.hub.access import TokenKind

_MANUAL = "https://docs.github.com/rest"


FORBIDDEN = {
    TokenKind.CLASSIC: "Must have admin rights to Repository.",
    TokenKind.FINE_GRAINED: "Resource not accessible by personal access token",
    TokenKind.ACTIONS: "Resource not accessible by integration",
}
ARCHIVED = "Repository was archived so is read-only."
NO_DRAFTS = "Draft pull requests are not supported in this repository."


class Refusal(Exception):  # noqa: N818  # an answer like any other, not an error of ours
    """A request is turned down with `status`, GitHub's `message` and, for 422, its list of `errors`."""

    def __init__(self, status: int, message: str, *errors: dict[str, str]) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors

    def body(self) -> dict[str, Any]:
        """Return the JSON document that GitHub sends."""
        errors = {"errors": list(self.errors)} if self.errors else {}
        return {"message": self.message, **errors, "documentation_url": _MANUAL, "status": str(self.status)}


def not_found() -> Refusal:
    """What GitHub answers for everything that is not there, or not for this token."""
    return Refusal(404, "Not Found")


def forbidden(kind: TokenKind) -> Refusal:
    """What GitHub answers when a token of that kind lacks a permission."""
    return Refusal(403, FORBIDDEN[kind])


def invalid(resource: str, field: str, code: str = "invalid") -> Refusal:
    """Return the 422 for one bad field. `code` is one of GitHub's: invalid, missing_field, already_exists."""
    return Refusal(422, "Validation Failed", {"resource": resource, "field": field, "code": code})


def custom(resource: str, message: str) -> Refusal:
    """Return the 422 that explains itself in a sentence."""
    return Refusal(422, "Validation Failed", {"resource": resource, "code": "custom", "message": message})
