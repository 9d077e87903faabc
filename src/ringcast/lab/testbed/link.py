"""A wire of a testbed, which can be cut, restored, slowed down and made to lose packets while it is used."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ringcast.lab.testbed import cleanup, scripts
from ringcast.lab.testbed.scripts import FAMILIES, FILTER_OF
from ringcast.lab.testbed.topology import Family, Kind, Loss, Port, TopologyError

if TYPE_CHECKING:
    from ringcast.lab.testbed.network import Testbed


class Link:
    """A wire of a testbed, to be made worse and better while it is used. `to` limits a change to one direction.

    Every method raises LabError, and TopologyError for a `to` that is not one of its ends.
    """

    def __init__(self, bed: Testbed, one: Port, other: Port) -> None:
        self._bed = bed
        self.wire = one.wire
        self._ports = (one, other)

    def cut(self) -> None:
        """Nothing that is sent arrives any more, and no sender gets an error."""
        self._set_cut("cut", True)

    def restore(self) -> None:
        """Undo `cut`; rate and loss are what they were."""
        self._change(
            "restore", {port.node: scripts.cut_lines(port, self._kind(port), cut=False) for port in self._ports}
        )

    def set_loss(self, loss: str | float | None, *, to: str | None = None, senders: Sequence[str] = ()) -> None:
        """`0.03`, `3%`, `every 100`, `5% in bursts of 4`; None or 0 for none. Of what each of these addresses sends
        (IPv4) exactly that share is lost, the same packets of each: what one meets, another meets too."""
        wanted = Loss.parse(loss or 0)
        lines = {port.node: scripts.loss_lines(port, self._kind(port), wanted, senders) for port in self._arriving(to)}
        self._change("set the loss of", lines)

    def set_rate(self, rate: str | None, *, to: str | None = None) -> None:
        """`10mbit`; None for as fast as the machine."""
        lines = {port.peer: scripts.rate_lines(self._other(port), rate) for port in self._arriving(to)}
        self._change("set the rate of", lines)

    def dropped(self, *, to: str | None = None, families: Sequence[Family] = FAMILIES) -> int:
        """How many packets of these families `set_loss` has dropped since it was set."""
        said = self._change(
            "read the counters of",
            {
                port.node: [f"{FILTER_OF[f]} -w -t mangle -vnxL {port.interface} 2>/dev/null || :" for f in families]
                for port in self._arriving(to)
            },
        )
        return sum(int(count) for text in said for count in re.findall(r"^\s*(\d+)\s+\d+\s+DROP\b", text, re.MULTILINE))

    def _set_cut(self, what: str, cut: bool) -> None:
        self._change(what, {port.node: scripts.cut_lines(port, self._kind(port), cut) for port in self._ports})

    def _arriving(self, to: str | None) -> list[Port]:
        if to not in (None, *self.wire.between):
            raise TopologyError(f"{to!r} is not an end of the link {self.wire}")
        return [port for port in self._ports if to in (None, port.node)]

    def _other(self, port: Port) -> Port:
        return self._ports[1] if port == self._ports[0] else self._ports[0]

    def _kind(self, port: Port) -> Kind:
        return self._bed.plan.kinds[port.node]

    def _change(self, what: str, lines: Mapping[str, list[str]]) -> list[str]:
        texts = {node: "\n".join(text) for node, text in lines.items()}
        with cleanup.undisturbed():
            return self._bed.run_scripts(texts, f"cannot {what} the link {self.wire}")
