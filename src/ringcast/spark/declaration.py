"""What a pipeline is: a declaration. Which tags and tables it reads, which table it writes, and a function between.

    @pipeline("heat", "mean temperature a minute", reads={"temperature": TEMPERATURE}, writes=HEAT)
    def heat(temperature: DataFrame) -> DataFrame: ...

Job, stream, command, lineage and quality follow from it (`jobs`, `streams`). A package names its modules in the entry
point group `ringcast.pipelines`, and what they declare is there; the built-in ones come in the same way. Must not know
how a pipeline is run.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, TypeVar

from ringcast.errors import RingcastError
from ringcast.spark.quality import Expectation
from ringcast.spark.tables.silver import Family
from ringcast.spark.tables.table import Table

if TYPE_CHECKING:
    from ringcast.spark.jobs import Job
    from ringcast.spark.streams import Sources, Streams

GROUP = "ringcast.pipelines"
logger = logging.getLogger("ringcast.spark")
Function = TypeVar("Function", bound=Callable[..., Any])

_declared: dict[str, Pipeline] = {}
_broken: dict[str, str] = {}


class NoSuchPipeline(RingcastError, LookupError):
    """No pipeline has that name."""

    def __init__(self, name: str, known: Sequence[str], broken: Mapping[str, str]) -> None:
        self.name = name
        failed = "".join(f"; {module} could not be loaded ({why})" for module, why in broken.items())
        super().__init__(f"there is no pipeline {name!r}; there are {', '.join(known)}{failed}")


class PipelineConflict(RingcastError):
    """Two modules declare a pipeline of the same name."""

    def __init__(self, name: str, one: str, other: str) -> None:
        self.name = name
        super().__init__(f"{one} and {other} both declare a pipeline {name!r}; rename one of them")


class NothingToDo(RingcastError):
    """A pipeline was given no input, and what to do about it."""

    def __init__(self, pipeline: str, advice: str) -> None:
        self.pipeline = pipeline
        self.advice = advice
        super().__init__(f"{pipeline} has nothing to work on: {advice}")


@dataclass(frozen=True)
class Pipeline:
    """`reads` names the function's arguments: a Family is tags, decoded; a Table is one of the lake's.

    With `scan`, messages of all families come undecoded and in one DataFrame, as the argument of that name. `each` and
    `tally` name columns of the function's result that are not written as they are: an array of structs, of which each
    becomes a row, and numbers whose sums go to `quality`.
    """

    name: str
    about: str
    function: Callable[..., Any]
    reads: Mapping[str, Family | Table] = field(default_factory=dict)
    writes: Table | None = None
    expectations: tuple[Expectation, ...] = ()
    key: tuple[str, ...] = ()
    clock: str = "event_time"
    margin_s: float = 1.0
    scan: str | None = None
    small: bool = False
    needs: Mapping[str, str] = field(default_factory=dict)
    each: str | None = None
    tally: tuple[str, ...] = ()
    job: Callable[[Job], None] | None = None
    stream: Callable[[Streams, Sources], object] | None = None

    @property
    def module(self) -> str:
        return self.function.__module__

    @property
    def families(self) -> list[Family]:
        return [source for source in self.reads.values() if isinstance(source, Family)]

    @property
    def tables(self) -> list[Table]:
        """Those it reads as they are."""
        return [source for source in self.reads.values() if isinstance(source, Table)]

    @property
    def options(self) -> dict[str, Any]:
        """The function's keyword-only arguments and their defaults: what a run may set."""
        found = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in found if p.kind is p.KEYWORD_ONLY and p.default is not p.empty}

    def takes(self, name: str) -> bool:
        return name in inspect.signature(self.function).parameters


def pipeline(
    name: str,
    about: str,
    *,
    reads: Mapping[str, Family | Table],
    writes: Table,
    expect: Sequence[Expectation] = (),
    key: Sequence[str] = (),
    clock: str = "event_time",
    margin_s: float = 1.0,
    scan: str | None = None,
    small: bool = False,
    needs: Mapping[str, str] | None = None,
    each: str | None = None,
    tally: Sequence[str] = (),
) -> Callable[[Function], Function]:
    """Declare a function from DataFrames to a DataFrame as a pipeline. The function stays as it is.

    `expect` is what its rows must be, `key` the columns by which a row is itself (a second one of the same key is left
    out and counted), `clock` its event time. Rows that depend on others up to `margin_s` away in time get these when
    only some hours are done. `small` results are fetched by the driver, which writes them without another Spark job.
    `needs` says what to do when an input table is empty. `each` and `tally` are as in Pipeline. A keyword-only argument
    with a default is an option; one named `watermark` is how long the stream waits for what is late. Raises
    PipelineConflict.
    """

    def declare(function: Function) -> Function:
        _register(
            Pipeline(
                name, about, function, dict(reads), writes, tuple(expect), tuple(key), clock, margin_s, scan, small,
                dict(needs or {}), each, tuple(tally),
            )
        )  # fmt: skip
        return function

    return declare


def own_job(name: str, about: str, *, writes: Table | None = None, reads: Mapping[str, Family | Table] | None = None,
            expect: Sequence[Expectation] = ()) -> Callable[[Function], Function]:  # fmt: skip
    """Declare a pipeline that is no function between tables: this one is given the Job and does all of it."""

    def declare(function: Function) -> Function:
        _register(Pipeline(name, about, function, dict(reads or {}), writes, tuple(expect), job=function))
        return function

    return declare


def own_stream(name: str) -> Callable[[Function], Function]:
    """The same pipeline's stream, given the Streams and where messages come from."""

    def declare(function: Function) -> Function:
        _declared[name] = replace(_declared[name], stream=function)
        return function

    return declare


def find(name: str) -> Pipeline:
    """Raises NoSuchPipeline."""
    load()
    if name not in _declared:
        raise NoSuchPipeline(name, sorted(_declared), _broken)
    return _declared[name]


def pipelines() -> list[Pipeline]:
    """All that are declared, by name."""
    load()
    return [_declared[name] for name in sorted(_declared)]


@cache
def load() -> None:
    """Import what the entry points name: a module, or a package with all of its modules."""
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        try:
            for module in _modules(entry.value):
                importlib.import_module(module)
        except PipelineConflict:
            raise
        except Exception as exc:  # another package's mistake must not take the rest away
            _broken[entry.value] = f"{type(exc).__name__}: {exc}"
            logger.warning("the pipelines of %s could not be loaded: %s", entry.value, exc)


def _modules(name: str) -> Iterator[str]:
    yield name
    package = importlib.import_module(name)
    for found in pkgutil.iter_modules(getattr(package, "__path__", ())):
        yield f"{name}.{found.name}"


def _register(made: Pipeline) -> None:
    before = _declared.get(made.name)
    if before is not None and before.module != made.module:
        raise PipelineConflict(made.name, before.module, made.module)
    _declared[made.name] = made
