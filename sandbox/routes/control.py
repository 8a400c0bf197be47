"""The control routes under ``/__sandbox__/``: what people who test a client change and ask.

Here: faults, changing lists, scans, planted errors, statistics; bodies that make no sense are a
400 that names the field. Not here: organizations and keys (standing). No part of the interface:
not described to clients, not limited, not counted; absent with ``--no-control``.
"""

from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from sandbox.admission import CONTROL
from sandbox.changes import GROWING, Changes, Order, UnchangeableError, Where
from sandbox.faults.catalogue import CATALOGUE, UnknownFaultError, kind_of
from sandbox.faults.kind import Fault, Kind
from sandbox.problem import ProblemError
from sandbox.statistics import Statistics
from sandbox.trial import Trial

ListName = Literal["plans", "partners", "organizations", "usage", "billing"]
Rate = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]  # per page read of the list
Count = Annotated[int, Field(ge=1)]
NOTHING = HTTPStatus.NO_CONTENT


class Body(BaseModel):
    """A body in which no field may be misspelt."""

    model_config = ConfigDict(extra="forbid", strict=True)


class FaultBody(Body):
    """A fault to switch on; what is left out is the kind's default."""

    name: str
    path: Annotated[str, Field(pattern="^/")] | None = None
    every: Count = 1
    after: Annotated[int, Field(ge=0)] = 0
    times: Count | None = None
    value: Annotated[float, Field(ge=0, allow_inf_nan=False)] | str | None = None

    def fault(self) -> Fault:
        """Make the fault.

        Raises:
            UnknownFaultError: there is no such kind, or its value is of another type.
        """
        kind = kind_of(self.name)
        value = kind.value if self.value is None else self.value
        if isinstance(value, str) != isinstance(kind.value, str) or (value is None) != (
            kind.value is None
        ):
            raise UnknownFaultError(f"the value of {kind.name} is like {kind.value!r}")
        return Fault(kind, self.path or kind.path, self.every, self.after, self.times, value)


class ChangesBody(Body):
    """Changes of one list, or of every list that can grow."""

    list: ListName | None = None
    insert: Rate = 0.0
    delete: Rate = 0.0
    move: Rate = 0.0
    duplicate: Rate = 0.0
    update: Rate = 0.0
    every: Count = 1
    where: Where = "anywhere"
    order: Order = "stable"


class ScanBody(Body):
    """The list whose next page begins the scan."""

    list: ListName


def bad(error: Exception) -> ProblemError:
    """Make a refusal of what was asked."""
    return ProblemError(HTTPStatus.BAD_REQUEST, str(error))


def unknown(what: str) -> ProblemError:
    """Make the refusal of something that is not there."""
    return ProblemError(HTTPStatus.NOT_FOUND, f"There is no {what}.")


def control_router() -> APIRouter:
    """Give an empty router of the control tree."""
    return APIRouter(prefix=CONTROL.rstrip("/"), include_in_schema=False)


def control_routes(trial: Trial, statistics: Statistics) -> APIRouter:
    """Give the control routes."""
    router = control_router()
    for add in (_faults, _changes, _scans):
        add(router, trial)

    @router.get("/statistics")
    async def seen() -> JSONResponse:
        return JSONResponse(statistics.report())

    @router.delete("/statistics", status_code=NOTHING)
    async def forget() -> None:
        statistics.reset()

    @router.get("/plant")
    async def planted() -> JSONResponse:
        return JSONResponse(trial.plant.report())

    @router.post("/reset", status_code=NOTHING)
    async def reset() -> None:
        trial.reset()
        statistics.reset()

    return router


def _shown(kind: Kind) -> dict[str, Any]:
    return {
        "name": kind.name,
        "meaning": kind.meaning,
        "stage": kind.stage,
        "value": kind.value,
        "path": kind.path,
    }


def _faults(router: APIRouter, trial: Trial) -> None:
    faults = trial.faults

    @router.get("/faults")
    async def listed() -> JSONResponse:
        catalogue = [_shown(kind) for kind in CATALOGUE.values()]
        return JSONResponse({"faults": faults.report(), "catalogue": catalogue})

    @router.post("/faults")
    async def add(body: FaultBody) -> JSONResponse:
        try:
            return JSONResponse(faults.add(body.fault()).report(), HTTPStatus.CREATED)
        except UnknownFaultError as error:
            raise bad(error) from error

    @router.delete("/faults", status_code=NOTHING)
    async def clear() -> None:
        faults.clear()

    @router.delete("/faults/{number}", status_code=NOTHING)
    async def remove(number: int) -> Response:
        if not faults.remove(number):
            raise unknown(f"fault {number}")
        return Response(status_code=NOTHING)


def _changes(router: APIRouter, trial: Trial) -> None:
    def report() -> JSONResponse:
        lists = trial.lists.items()
        return JSONResponse(
            {name: {"count": one.count, **vars(one.changes)} for name, one in lists}
        )

    @router.get("/changes")
    async def configured() -> JSONResponse:
        return report()

    @router.post("/changes")
    async def configure(body: ChangesBody) -> JSONResponse:
        changes = Changes(**body.model_dump(exclude={"list"}))
        try:
            for name in (body.list,) if body.list else GROWING:
                trial.lists[name].configure(changes)
        except UnchangeableError as error:
            raise bad(error) from error
        return report()

    @router.delete("/changes", status_code=NOTHING)
    async def stop() -> None:
        # What has changed stays so; POST reset puts every record back into its place.
        for living in trial.lists.values():
            living.configure(Changes())


def _scans(router: APIRouter, trial: Trial) -> None:
    @router.post("/scans")
    async def begin(body: ScanBody) -> JSONResponse:
        return JSONResponse(trial.open_scan(body.list), HTTPStatus.CREATED)

    @router.post("/scans/{number}/end")
    async def end(number: int) -> JSONResponse:
        truth = trial.close_scan(number)
        if truth is None:
            raise unknown(f"open scan {number}")
        return JSONResponse(truth)
