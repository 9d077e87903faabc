"""The models of this node, by metric: those of the package, until a client or another node has a later one.

Invariants: of two models for one metric the later one counts, on every node that met one that has it; what a client
loads is not worse than what it replaces.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import NamedTuple

from ringcast import _core
from ringcast.adapt import Chooser, ModelError
from ringcast.adapt.judging import refusal, shipped_examples, unseen_by
from ringcast.adapt.shipped import ruled, shipped_model
from ringcast.adapt.wanting import IN_ORDER, plain
from ringcast.control import service
from ringcast.control.between.choosing import MODEL, MOST_MODEL_BYTES, AskModel, WholeModel
from ringcast.daemon.mesh.interface import ServingMesh
from ringcast.errors import BadMessage, QosMismatch
from ringcast.model.carrier import METRICS

logger = logging.getLogger("ringcast.daemon")

TIMEOUT_S = 2.0
AHEAD_NS = 3_600_000_000_000
"""A model that comes from further in the future than this is not believed: it could never be replaced."""


class Loaded(NamedTuple):
    chooser: Chooser
    data: bytes
    loaded_ns: int


class Models:
    """`may_give` says of which nodes a model is taken: it chooses for all tags."""

    def __init__(self, mesh: ServingMesh, may_give: Callable[[str], bool] = lambda node: True) -> None:
        self._mesh = mesh
        self._may_give = may_give
        self._models: dict[str, Loaded] = {}
        self._shipped: dict[str, Chooser | None] = {}
        """Read when they are first asked for."""
        self._refused: set[tuple[str, str, int]] = set()
        mesh.serve(MODEL, self._serve)

    def of(self, metric: str, in_order: bool = False) -> Chooser | None:
        """The model by which transports are chosen for it; for an order there may be one of its own."""
        name = f"{metric}{IN_ORDER}" if in_order else metric
        if name not in self._shipped:
            self._shipped[name] = shipped_model(name)
        found = self._models.get(name)
        return found.chooser if found is not None else self._shipped[name]

    def versions(self) -> dict[str, int]:
        return {metric: model.loaded_ns for metric, model in self._models.items()}

    def load(self, data: bytes, loaded_ns: int, origin: str = "the model") -> str:
        """Take it into use; return its metric. Raises ModelError."""
        if len(data) > MOST_MODEL_BYTES:
            raise ModelError(origin, f"it has {len(data)} bytes, more than the {MOST_MODEL_BYTES} that a daemon takes")
        chooser = Chooser.parse(data, origin)
        self._models[chooser.metric] = Loaded(chooser, data, loaded_ns)
        logger.info("transports for %s are chosen by a model from %s", chooser.metric, origin)
        return chooser.metric

    def load_from(self, fd: int) -> None:
        """Take a client's file into use, for the whole mesh. Raises QosMismatch."""
        try:
            data = os.pread(fd, MOST_MODEL_BYTES + 1, 0)
            if len(data) <= MOST_MODEL_BYTES and (worse := self._worse(Chooser.parse(data, "a client"))):
                remedy = "train it on more: 'ringcast pipeline run train' learns from all that is in the lake"
                raise QosMismatch("this model", worse, remedy)
            self.load(data, _core.utc_ns(), "a client")
        except (OSError, ModelError) as exc:
            reason = exc.reason if isinstance(exc, ModelError) else exc.strerror or str(exc)
            raise QosMismatch("this model", reason, "'ringcast pipeline run train' writes one") from exc

    def _worse(self, new: Chooser) -> str:
        """Why it is not to replace what is in force, '' where it may."""
        metric, in_order = plain(new.metric)
        if metric not in METRICS.values():
            return f"it is for {new.metric!r}, which nobody can ask for; there are {', '.join(METRICS.values())}"
        examples = shipped_examples(new.metric)
        if examples is None:
            return "there are no environments in this package to judge it by"
        if missing := unseen_by(new, examples):
            return f"it looks at {', '.join(missing)}, which nothing measures; there are {', '.join(examples.numbers)}"
        old = self.of(metric, in_order)
        against = "the model in force" if old is not None else "the rule that is used without a model"
        return refusal(new.choose, old.choose if old is not None else ruled(new.metric, examples), examples, against)

    async def follow(self, node: str, versions: dict[str, int], now_ns: int) -> None:
        """Take what another node has later than we have. Raises TimeoutError, RingcastError."""
        if not self._may_give(node):
            return
        for metric, loaded_ns in versions.items():
            far = loaded_ns > now_ns + AHEAD_NS
            if far or not self._lacks(metric, loaded_ns) or (node, metric, loaded_ns) in self._refused:
                continue
            try:
                data = await self._fetch(node, metric, loaded_ns)
                if self._lacks(metric, loaded_ns):  # a later one may have come meanwhile
                    self.load(data, loaded_ns, f"node {node}")
            except ModelError as exc:
                self._refused.add((node, metric, loaded_ns))
                logger.warning("a model of node %s is not taken: %s", node, exc.reason)

    def _lacks(self, metric: str, loaded_ns: int) -> bool:
        known = self._models.get(metric)
        return known is None or known.loaded_ns < loaded_ns

    async def _fetch(self, node: str, metric: str, loaded_ns: int) -> bytes:
        answer = await self._mesh.request(node, MODEL, service.encode(AskModel(metric=metric)), TIMEOUT_S)
        found = service.decode_untrusted(answer, WholeModel)
        if found.loaded_ns != loaded_ns:
            raise BadMessage(f"node {node} exchanged its model for {metric!r} meanwhile")
        return found.data

    async def _serve(self, node: str, payload: bytes) -> bytes:
        found = self._models.get(service.decode_untrusted(payload, AskModel).metric)
        loaded_ns, data = (found.loaded_ns, found.data) if found is not None else (0, b"")
        return service.encode(WholeModel(loaded_ns=loaded_ns, data=data))
