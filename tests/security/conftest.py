"""Somebody on the network who has no key and says what no daemon would, and the daemons that hear it."""

from __future__ import annotations

import contextlib
import itertools
import socket
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from addresses import free_addresses

import ringcast
from ringcast.control.peering import (
    MAX_FRAME_BYTES,
    Ack,
    Call,
    Failure,
    FrameReader,
    Hello,
    NodeRecord,
    PeerMessage,
    Ping,
    Reply,
    TableDelta,
    decode_untrusted,
    encode_frame,
)
from ringcast.daemon.table.rows import Delta, Entry
from ringcast.model.addresses import split
from ringcast.testing.waiting import PATIENCE_S

_incarnations = itertools.count(2**63)


class Attacker:
    """A link that it dialled to a daemon. Its record is whatever it likes."""

    def __init__(self, address: str, **fields: Any) -> None:
        age_ns = fields.pop("age_ns", 0)
        self.record = NodeRecord(
            **{"name": "mallory", "incarnation": next(_incarnations), "control": ("127.0.0.1:9",)} | fields
        )
        self._frames = FrameReader(MAX_FRAME_BYTES)
        self._ids = itertools.count(1)
        self.socket = socket.create_connection(split(address), PATIENCE_S)
        self.say(Hello(record=self.record, age_ns=age_ns))
        self.their_hello: Hello = self.hear(Hello)

    def say(self, message: PeerMessage) -> None:
        self.socket.sendall(encode_frame(message))

    def say_rows(self, node: str, life: int, *rows: Any, since: int = 0, through: int | None = None) -> None:
        """As if they were the rows of a node."""
        entries = [Entry(row.key, since + number, row) for number, row in enumerate(rows, 1)]
        end = since + len(rows) if through is None else through
        delta = Delta(node=node, incarnation=life, since=since, through=end, floor=0, entries=entries)
        self.say(TableDelta(page=msgspec.msgpack.encode([delta])))

    def hear(self, kind: type) -> Any:
        """The next message of that kind; None when the link ended before. Pings are answered meanwhile."""
        while True:
            while (body := self._frames.next_body()) is not None:
                message = decode_untrusted(body)
                if isinstance(message, Ping):
                    with contextlib.suppress(OSError):
                        self.say(Ack(seq=message.seq))
                if isinstance(message, kind):
                    return message
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self._frames.feed(data)

    def heard_all(self) -> bool:
        """Wait until the daemon has handled all that was said; whether it still listens."""
        return self.ask("no such service", b"") is not None

    def ask(self, service: str, payload: bytes) -> Reply | Failure | None:
        number = next(self._ids)
        with contextlib.suppress(OSError):
            self.say(Call(id=number, service=service, size=len(payload), piece=payload))
            while (answer := self.hear(Reply | Failure)) is not None:
                if answer.id == number:
                    return answer
        return None

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def attack() -> Iterator[Callable[..., Attacker]]:
    made: list[Attacker] = []

    def make(address: str, **fields: Any) -> Attacker:
        made.append(Attacker(address, **fields))
        return made[-1]

    yield make
    for attacker in made:
        attacker.close()


class Victim:
    """A daemon, a session with it, and where it listens."""

    def __init__(self, name: str, address: str, daemon: Any) -> None:
        self.name = name
        self.address = address
        self.daemon = daemon
        self.session = ringcast.connect(socket=daemon.socket_path, start=False)

    @property
    def refused(self) -> dict[str, int]:
        return self.session.dropped().get("mesh", {})

    def here(self) -> set[str]:
        return {node.name for node in self.session.nodes() if node.state == "here"}

    def knows(self, tag: str) -> bool:
        return bool(self.session.tags(tag))


@pytest.fixture
def victims(make_daemon: Callable[..., Any], eventually: Callable[..., None]) -> Iterator[Callable[..., list[Victim]]]:
    """Daemons of these names, in one mesh with those made before, in this environment. All of them are returned."""
    made: list[Victim] = []

    def make(*names: str, **environment: str) -> list[Victim]:
        for name in names:
            (address,) = free_addresses(1)
            options = ["--name", name, "--listen", address, "--no-scout"]
            options += [word for other in made for word in ("--peer", other.address)]
            made.append(Victim(name, address, make_daemon(*options, **environment)))
        known = {victim.name for victim in made}
        eventually(lambda: all(victim.here() >= known for victim in made))  # strangers may be there too
        return made

    yield make
    for victim in made:
        victim.session.close()
