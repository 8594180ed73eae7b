"""Ordering drills over HTTP, for a hub in another process.

    POST   /_hub/drills        {"method": "POST", "path": "*/pulls", "work": true, "status": 502}   201 {"id": 0, …}
    GET    /_hub/drills        every drill, with its hits
    DELETE /_hub/drills/{id}   204

Only when the hub is started for it, and only for an administrator's token. Loopback is shared with the agents and with
every page in a browser: somebody who could order drills there could make the hub claim what is not so. The token also
keeps pages out, which cannot send one without asking first.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from runner.hub.access import Permission
from runner.hub.drills import ANY, Drill, Trouble
from runner.hub.refusal import not_found
from runner.hub.site import Site


class NewDrill(BaseModel):
    """The body of POST; the fields are those of `Hub.drill` and of `Trouble`."""

    model_config = ConfigDict(extra="forbid")

    method: str = ANY
    path: str
    times: int | None = 1
    contains: str = ""
    delay: float = 0.0
    work: bool = False
    status: int | None = None
    headers: dict[str, str] = {}
    body: Any = None
    drop: bool = False
    genuine: bool = False

    def trouble(self) -> Trouble:
        """Return what is to happen."""
        return Trouble(**self.model_dump(exclude={"method", "path", "times", "contains"}))


def drill_routes(site: Site) -> list[BaseRoute]:
    """Return the routes, none when the hub takes no orders."""
    if not site.control:
        return []
    control = _Control(site)
    return [
        Route("/_hub/drills", control.drills, methods=["GET", "POST"]),
        Route("/_hub/drills/{id:int}", control.remove, methods=["DELETE"]),
    ]


class _Control:
    """The endpoints."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def drills(self, request: Request) -> Response:
        """List the drills, or add one."""
        if not self._admits(request):
            return _not_found()
        if request.method == "GET":
            return JSONResponse([_shape(place, drill) for place, drill in enumerate(self._site.drills.all())])
        try:
            new = NewDrill.model_validate_json(await request.body())
        except ValidationError as error:
            return JSONResponse({"message": str(error)}, 422)
        drill = self._site.drills.add(new.method, new.path, new.trouble(), times=new.times, contains=new.contains)
        return JSONResponse(_shape(self._site.drills.all().index(drill), drill), 201)

    async def remove(self, request: Request) -> Response:
        """Remove one drill; its hits can still be read."""
        drills = self._site.drills.all()
        place: int = request.path_params["id"]
        if not self._admits(request) or place >= len(drills):
            return _not_found()
        drills[place].remove()
        return Response(status_code=204)

    def _admits(self, request: Request) -> bool:
        visitor = self._site.door.visitor(request.headers.get("authorization", ""))
        return visitor is not None and visitor.may(Permission.ADMIN)


def _shape(place: int, drill: Drill) -> dict[str, object]:
    described = {"id": place, "method": drill.method, "path": drill.path, "times": drill.times}
    return described | {"hits": drill.hits, "removed": drill.removed}


def _not_found() -> Response:
    return JSONResponse(not_found().body(), 404)
