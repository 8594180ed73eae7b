"""The REST API, shaped like GitHub's: https://docs.github.com/rest."""

from starlette.routing import BaseRoute

from runner.hub.rest.actions import action_routes
from runner.hub.rest.call import Api
from runner.hub.rest.checks import check_routes
from runner.hub.rest.comments import comment_routes
from runner.hub.rest.issues import issue_routes
from runner.hub.rest.labels import label_routes
from runner.hub.rest.links import link_routes
from runner.hub.rest.people import people_routes
from runner.hub.rest.protection import protection_routes
from runner.hub.rest.pulls import pull_routes
from runner.hub.rest.repositories import repository_routes
from runner.hub.site import Site


def rest_routes(site: Site) -> list[BaseRoute]:
    """Return every route, to be mounted under `/api/v3`."""
    api = Api(site)
    parts = (
        protection_routes,  # before the branches, whose names may hold slashes
        repository_routes,
        check_routes,
        action_routes,
        label_routes,
        comment_routes,
        pull_routes,
        link_routes,
        people_routes,
        issue_routes,
    )
    return [route for part in parts for route in part(api)]
