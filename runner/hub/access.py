"""Who a token belongs to, and what it may do."""

import base64
import binascii
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

LOGIN = "nightkeep"


class Permission(StrEnum):
    """What a token may do in every repository; each includes the ones before it.

    https://docs.github.com/en/organizations/managing-user-access-to-your-organizations-repositories/managing-repository-roles/repository-roles-for-an-organization
    """

    READ = "read"
    TRIAGE = "triage"
    WRITE = "write"
    ADMIN = "admin"

    def includes(self, other: "Permission") -> bool:
        """Tell whether this permission is `other` or more."""
        ranks = list(Permission)
        return ranks.index(self) >= ranks.index(other)


class TokenKind(StrEnum):
    """GitHub's kinds of tokens, which differ in headers, in what they may do and in how they are refused.

    `ACTIONS` is the token that a workflow run gets.
    """

    CLASSIC = "classic"
    FINE_GRAINED = "fine-grained"
    ACTIONS = "actions"


class Area(StrEnum):
    """What a token is given or not given besides its permission.

    https://docs.github.com/rest/authentication/permissions-required-for-fine-grained-personal-access-tokens
    """

    ACTIONS = "actions"
    ADMINISTRATION = "administration"
    CHECKS = "checks"
    STATUSES = "statuses"


@dataclass(frozen=True, slots=True)
class Token:
    """What a token may do, what kind it is, and what it may not even read."""

    permission: Permission
    kind: TokenKind = TokenKind.FINE_GRAINED
    without: frozenset[Area] = frozenset()


@dataclass(frozen=True, slots=True)
class Visitor:
    """The user behind a token."""

    login: str
    permission: Permission
    kind: TokenKind = TokenKind.FINE_GRAINED
    without: frozenset[Area] = frozenset()

    def may(self, needed: Permission) -> bool:
        """Tell whether the visitor has at least the permission `needed`."""
        return self.permission.includes(needed)


class Door:
    """Knows the tokens. Without any, every token that is not empty belongs to one administrator."""

    def __init__(self, tokens: Mapping[str, Permission | Token] | None) -> None:
        self._visitors: dict[bytes, Visitor] | None = None
        if tokens is not None:
            self._visitors = {
                secret.encode(): _visitor(place, token) for place, (secret, token) in enumerate(tokens.items(), start=1)
            }

    def revoke(self, token: str) -> None:
        """Know that token no more. Raises KeyError for one that was not known."""
        if self._visitors is None:
            raise KeyError("every token is taken here")
        # Another dictionary: a request that is being answered looks through the one that it has.
        self._visitors = dict(self._visitors)
        del self._visitors[token.encode()]

    def permission_of(self, login: str) -> Permission | None:
        """Return what the token of that user may do; None when no user of ours is called so."""
        visitors = (Visitor(LOGIN, Permission.ADMIN),) if self._visitors is None else tuple(self._visitors.values())
        return next((one.permission for one in visitors if one.login.casefold() == login.casefold()), None)

    def visitor(self, authorization: str) -> Visitor | None:
        """Return who sends the header `authorization`, or None when nobody that we know does."""
        token = _token(authorization).encode()
        if not token:
            return None
        if self._visitors is None:
            return Visitor(LOGIN, Permission.ADMIN)
        known = (visitor for secret, visitor in self._visitors.items() if hmac.compare_digest(secret, token))
        return next(known, None)


def _visitor(place: int, given: Permission | Token) -> Visitor:
    token = given if isinstance(given, Token) else Token(given)
    if token.kind is TokenKind.ACTIONS:
        return Visitor("github-actions[bot]", token.permission, token.kind, token.without)
    return Visitor(LOGIN if place == 1 else f"{LOGIN}-{place}", token.permission, token.kind, token.without)


def _token(authorization: str) -> str:
    scheme, _, credential = authorization.partition(" ")
    match scheme.lower():
        case "token" | "bearer":
            return credential.strip()
        case "basic":
            return _password(credential)
        case _:
            return ""


def _password(credential: str) -> str:
    try:
        _, _, password = base64.b64decode(credential, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return password
