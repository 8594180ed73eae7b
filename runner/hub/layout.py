"""What all pages have in common.

Everything that somebody wrote is escaped, and the Content-Security-Policy lets nothing run or load.
"""

from html import escape
from urllib.parse import quote

from starlette.responses import HTMLResponse, Response

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
SHORT_ID = 10  # characters of an object id that people read


def page(title: str, body: str) -> Response:
    """Return a whole page."""
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><link rel="stylesheet" href="/hub.css">'
    )
    document = f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'
    return HTMLResponse(document, headers=HEADERS)


def missing() -> Response:
    """Return the page for what is not there."""
    response = page("Not found", "<h1>Not found</h1><p>There is nothing here.</p>")
    response.status_code = 404
    return response


def link(path: str, text: str) -> str:
    """Return a link to another page of ours."""
    return f'<a href="{escape(quote(path))}">{escape(text)}</a>'


def object_id(commit: str) -> str:
    """Return the beginning of a commit's id, which shows the rest when it is pointed at."""
    return f"<code title='{escape(commit)}'>{escape(commit[:SHORT_ID])}</code>"
