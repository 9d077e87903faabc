"""The mesh as it is: every node's report, and who subscribes to what, with where each proxy sits and by whose word."""

from __future__ import annotations

import asyncio
import logging

from ringcast.control import service
from ringcast.control.placing import REPORT, AskReport, Observation, Report, SubscriberPlace
from ringcast.daemon.clients.local import Local
from ringcast.daemon.mesh.shell import Mesh
from ringcast.daemon.placing.reporting import Reporting
from ringcast.errors import RingcastError
from ringcast.model.place import decided

logger = logging.getLogger("ringcast.daemon")

TIMEOUT_S = 1.0


class Observing:
    def __init__(self, local: Local, mesh: Mesh, reporting: Reporting) -> None:
        self._local = local
        self._mesh = mesh
        self._reporting = reporting

    async def observe(self, *, measured: bool = True) -> Observation:
        """Nodes that do not answer in time are not among its `nodes`. Without `measured` nobody is asked."""
        if not measured:
            return Observation(nodes=[], reports=[], subscribers=self.subscribers())
        me = self._local.table.node
        here = sorted({node.name for node in self._mesh.nodes() if node.state == "here"} | {me})
        asked = [self._ask(node) for node in here if node != me]
        reports = [await self._reporting.report(), *(await asyncio.gather(*asked))]
        found = [report for report in reports if report is not None]
        answered = {report.node for report in found}
        return Observation(
            nodes=[node for node in here if node in answered], reports=found, subscribers=self.subscribers(),
            unanswered=[node for node in here if node not in answered],
        )  # fmt: skip

    def subscribers(self) -> list[SubscriberPlace]:
        """Of every tag that has a publisher."""
        table = self._local.table
        found = []
        for tag in sorted({row.info.tag for row in table.all_publishers() if row.alive}):
            row = table.tag(tag)
            if row is None or tag.startswith("@"):
                continue
            for one in table.subscribers(tag):
                node, number, wanted = one.owner, one.info.id, one.wanted
                word = decided(wanted.at, node, number, row.settings, row.attributes.at, row.placed)
                found.append(
                    SubscriberPlace(
                        tag=tag, node=node, id=number, wanted=wanted, at=word.at, by=word.by,
                        overrides=word.overrides, why=word.why, keeper=row.primary,
                    )
                )  # fmt: skip
        return found

    async def _ask(self, node: str) -> Report | None:
        try:
            answer = await self._mesh.request(node, REPORT, service.encode(AskReport()), TIMEOUT_S)
            report = service.decode_untrusted(answer, Report)
        except (TimeoutError, RingcastError) as exc:
            logger.debug("node %s gives no report: %s", node, exc)
            return None
        return report if report.node == node else None
