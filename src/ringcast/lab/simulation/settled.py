"""A large mesh whose nodes have found each other already, in virtual time.

Every daemon knows every other, so ten thousand of them would hold a hundred million records: more than fits into one
process. What they know of each other is the same, so here they share it. Invariant: nobody changes what is shared; a
daemon that comes, goes, or is suspected would, and raises. What happens on links is the daemons' own doing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from ringcast.daemon.mesh.core.roster import Member, Status
from ringcast.lab.simulation.many_nodes import MeshSimulation, SimulatedNode


class _Shared(dict[Any, Any]):
    """A dictionary that everybody reads."""

    def _refuse(self, *args: object) -> NoReturn:
        raise RuntimeError("a node of a settled mesh came, went or was suspected; simulate that with fewer nodes")

    __setitem__ = __delitem__ = _refuse
    pop = update = setdefault = clear = popitem = _refuse  # type: ignore[assignment]


class _AllBut(Mapping[str, Any]):
    """What is shared, for the node of that name, which is left out."""

    def __init__(self, shared: _Shared, name: str) -> None:
        self._shared, self._name = shared, name

    def __getitem__(self, name: str) -> Any:
        if name == self._name:
            raise KeyError(name)
        return self._shared[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._shared if name != self._name)

    def __len__(self) -> int:
        return len(self._shared) - 1


FIRST_TICK_S = 0.01
"""By then all links have said who is at their ends."""


def settle(sim: MeshSimulation, names: list[str]) -> None:
    """Start daemons of these names that know each other and are linked as such a mesh is."""
    # Nobody's turns are at the same moments as anybody else's.
    nodes = [sim.start(name, first_tick_s=FIRST_TICK_S + i / len(names)) for i, name in enumerate(names)]
    records = [node.cluster.membership.me for node in nodes]
    members = _Shared({record.incarnation: Member(record, Status.ALIVE, 0) for record in records})
    here = sorted(members)
    by_name = _Shared({record.name: [record.incarnation] for record in records})
    holders = _Shared({record.name: record for record in records})
    lives = _Shared({record.name: record.life for record in records})
    sums = nodes[0].cluster.membership.roster.keyed_sums
    for member in members.values():
        if member.record is not records[0]:
            sums.toggle(member.record.incarnation, member.rank)
    for node in nodes:
        _share(node, members, here, by_name, holders, lives)
        own = node.cluster.membership.roster.keyed_sums
        own.sums, own.total = list(sums.sums), sums.total
    numbered = {node.cluster.membership.me.incarnation: node for node in nodes}
    for number, node in numbered.items():
        for other in node.cluster.membership.roster.neighbours():
            if number < other:
                sim.link(node, numbered[other])
    sim.run(FIRST_TICK_S)


def _share(
    node: SimulatedNode, members: _Shared, here: list[int], by_name: _Shared, holders: _Shared, lives: _Shared
) -> None:
    cluster: Any = node.cluster  # what is shared is the insides of daemons, of which nobody else is to know
    roster = cluster.membership.roster
    roster.members, roster._here, roster._names = members, here, by_name
    cluster.membership.names.holders = _AllBut(holders, node.name)
    cluster._gossip._lives = _AllBut(lives, node.name)
