"""The address of an issue, and whether a clone is one of its repository."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

_ISSUE = re.compile(
    r"(?P<server>https?://[^/\s]+)/(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)/issues/(?P<number>[1-9][0-9]{0,17})/?(?:[#?]\S*)?"
)
# https://host/owner/name.git, ssh://git@host:22/owner/name.git, git@host:owner/name.git
_REMOTE = re.compile(
    r"(?:(?P<scheme>[a-z+]+)://)?(?:[^@/\s]+@)?(?P<host>[^/:\s]+)(?::(?P<port>\d+))?[:/](?P<owner>[^/\s]+)/(?P<name>[^/\s]+?)(?:\.git)?/?"
)


@dataclass(frozen=True, slots=True)
class IssueUrl:
    """An issue: `server` is `https://host[:port]`, the rest as in its URL."""

    server: str
    owner: str
    name: str
    number: int

    @classmethod
    def parse(cls, text: str) -> "IssueUrl | None":
        """Return the issue at that URL, or None when it is not the URL of an issue."""
        match = _ISSUE.fullmatch(text.strip())
        if match is None or not is_address(match["server"]):
            return None
        return cls(match["server"].rstrip("/"), match["owner"], match["name"], int(match["number"]))

    def __str__(self) -> str:
        """Return the URL."""
        return f"{self.server}/{self.repository}/issues/{self.number}"

    @property
    def repository(self) -> str:
        """Return `owner/name`."""
        return f"{self.owner}/{self.name}"

    @property
    def clone_url(self) -> str:
        """Return where git finds the repository over HTTP."""
        return f"{self.server}/{self.repository}.git"

    def is_cloned_from(self, remote_url: str) -> bool:
        """Whether a clone with that remote URL, by HTTP or SSH, is one of this issue's repository."""
        match = _REMOTE.fullmatch(remote_url.strip())
        if match is None:
            return False
        host, port = _host_and_port(self.server)
        # By SSH the port is another service's, so only the host can be compared.
        by_http = match["scheme"] in ("http", "https")
        same_place = match["host"].lower() == host and (not by_http or match["port"] == port)
        return same_place and f"{match['owner']}/{match['name']}".lower() == self.repository.lower()


def repository_of(remote_url: str) -> tuple[str, str] | None:
    """Return the host and OWNER/NAME that a clone's remote names, None when it is on no server.

    The host is in small letters, with its port only when that is HTTP's.
    """
    match = _REMOTE.fullmatch(remote_url.strip())
    if match is None or match["owner"] in (".", ".."):
        return None
    by_http = match["scheme"] in ("http", "https") and match["port"]
    host = match["host"].lower()
    host = f"{host}:{match['port']}" if by_http else host
    return (host, f"{match['owner']}/{match['name']}") if is_address(f"https://{host}") else None


def is_address(url: str) -> bool:
    """Whether a URL is one of a server that can be asked by HTTP."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port beyond the last, brackets around what is no address
        return False


def _host_and_port(server: str) -> tuple[str, str | None]:
    host, _, port = server.split("://", 1)[1].partition(":")
    return host.lower(), port or None
