"""Plain pages for people: what the hub has, and one page for each issue and pull request.

They need no token: they show what the API shows, on loopback.
"""

import re
from collections.abc import Iterable
from html import escape

from markdown_it import MarkdownIt
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from runner.hub.layout import HEADERS, link, missing, object_id, page
from runner.hub.pull_page import pull_html
from runner.hub.pull_requests import follow
from runner.hub.site import Site
from runner.hub.store import Comment, Issue, Repository
from runner.hub.stylesheet import STYLESHEET

# Tags that GitHub lets through and that carry nothing: no attribute, so no script and no address.
_PLAIN_TAG = re.compile(r"&lt;(/?(?:details|summary|sub|sup|kbd))&gt;")
_HTML_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def page_routes(site: Site) -> list[BaseRoute]:
    """Return the routes of the pages."""
    pages = _Pages(site)
    return [
        Route("/", pages.front),
        Route("/hub.css", pages.stylesheet),
        Route("/{owner}/{name}", pages.repository),
        Route("/{owner}/{name}/issues/{number:int}", pages.issue),
        Route("/{owner}/{name}/pull/{number:int}", pages.issue),
    ]


class _Pages:
    """The endpoints; Starlette runs them in threads."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def front(self, _request: Request) -> Response:
        """List the repositories."""
        names = [repository.full_name for repository in self._site.store.repositories.all()]
        items = "".join(f"<li>{link(f'/{name}', name)}</li>" for name in names)
        return page("Nightkeep hub", f"<h1>Repositories</h1><ul>{items or '<li>None yet.</li>'}</ul>")

    def stylesheet(self, _request: Request) -> Response:
        """Serve the stylesheet."""
        return PlainTextResponse(STYLESHEET, media_type="text/css", headers=HEADERS)

    def repository(self, request: Request) -> Response:
        """List the issues and pull requests of one repository, newest first."""
        repository = self._repository(request)
        if repository is None:
            return missing()
        issues = reversed(self._site.store.issues.all(repository.id))
        items = "".join(f"<li>{_line(repository, issue)}</li>" for issue in issues)
        heading = f"<h1>{escape(repository.full_name)}</h1>"
        return page(repository.full_name, f"{heading}<ul>{items or '<li>No issues yet.</li>'}</ul>")

    def issue(self, request: Request) -> Response:
        """Show one issue or pull request with its comments."""
        repository = self._repository(request)
        if repository is None:
            return missing()
        found = self._site.store.issues.find(repository.id, request.path_params["number"])
        if found is None:
            return missing()
        issue = follow(self._site.store, repository, found)
        comments = self._site.store.comments.all(issue.id)
        proposal = pull_html(self._site, repository, issue) if issue.pull is not None else ""
        return page(f"{issue.title} · #{issue.number}", _issue_html(repository, issue, comments, proposal))

    def _repository(self, request: Request) -> Repository | None:
        name = request.path_params["name"].removesuffix(".git")
        return self._site.store.repositories.find(request.path_params["owner"], name)


def _issue_html(repository: Repository, issue: Issue, comments: Iterable[Comment], proposal: str) -> str:
    """Return the page's body for one issue or pull request; `proposal` is what only the latter has."""
    texts = [_text(issue.author, issue.created_at, issue.body or "", "")]
    texts += [_text(one.author, one.created_at, one.body, f"issuecomment-{one.id}") for one in comments]
    home = link(f"/{repository.full_name}", repository.full_name)
    return (
        f"<header><p>{home}</p><h1>{escape(issue.title)} <span class='quiet'>#{issue.number}</span></h1>"
        f"<p>{_badge(issue)} {_labels(issue)}</p>{_ends(issue)}</header>{''.join(texts)}{proposal}"
    )


def markdown(text: str) -> str:
    """Return `text` as HTML: of raw HTML a few plain tags stay, the rest is escaped; HTML comments are left out."""
    # The parser must know HTML to tell a comment from the same characters in a code block; what it finds is not
    # passed on as HTML all the same.
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    for kind in ("html_block", "html_inline"):
        parser.add_render_rule(kind, _raw_html)
    return str(parser.render(text)).strip()


def _shown_state(issue: Issue) -> str:
    """Return open, draft, merged or closed."""
    if issue.pull is not None and issue.pull.merged_at is not None:
        return "merged"
    return "draft" if issue.open and issue.pull is not None and issue.pull.draft else issue.state


def _raw_html(_renderer: object, tokens: list[object], place: int, _options: object, _environment: object) -> str:
    raw = escape(_HTML_COMMENT.sub("", getattr(tokens[place], "content", "")))
    return _PLAIN_TAG.sub(r"<\1>", raw)


def _line(repository: Repository, issue: Issue) -> str:
    kind = "issues" if issue.pull is None else "pull"
    named = link(f"/{repository.full_name}/{kind}/{issue.number}", f"#{issue.number} {issue.title}")
    return f"{_badge(issue)} {named} {_labels(issue)}"


def _text(author: str, time: str, body: str, anchor: str) -> str:
    identity = f" id='{anchor}'" if anchor else ""
    content = markdown(body) or "<p class='quiet'>No description.</p>"
    return f"<article{identity}><h2>{escape(author)}, {escape(time)}</h2><div>{content}</div></article>"


def _badge(issue: Issue) -> str:
    state = _shown_state(issue)
    return f"<span class='state {state}'>{state}</span>"


def _labels(issue: Issue) -> str:
    return " ".join(f"<span class='label'>{escape(label.name)}</span>" for label in issue.labels)


def _ends(issue: Issue) -> str:
    if issue.pull is None:
        return ""
    head, base = escape(issue.pull.head), escape(issue.pull.base)
    return f"<p><code>{head}</code> → <code>{base}</code> at {object_id(issue.pull.head_id)}</p>"
