"""Where GitHub's API is."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from delivery.errors import PreflightError
from delivery.github import graphql_url
from delivery.issue_url import is_address


def api_url(server: str, environment: Mapping[str, str]) -> str:
    """Return the API's address: as Actions says, else where github.com and GitHub Enterprise have it.

    `server` is `https://host[:port]`. Raises PreflightError for an address that is none, and when the environment
    names another address for GraphQL than the one that goes with it: a Run would change drafts on another server.
    """
    address = environment.get("GITHUB_API_URL", "").rstrip("/")
    if address and not is_address(address):
        raise PreflightError(f"GITHUB_API_URL is no address: {address!r}; it looks like https://api.github.com")
    if not address:
        on_github = urlsplit(server).hostname == "github.com"
        address = "https://api.github.com" if on_github else f"{server}/api/v3"
    named, derived = environment.get("GITHUB_GRAPHQL_URL", "").rstrip("/"), graphql_url(address)
    if named and named.lower() != derived.lower():
        raise PreflightError(
            f"GITHUB_GRAPHQL_URL is {named}, but the API at {address} has its GraphQL at {derived}; "
            "unset it, or name both of the same server"
        )
    return address
