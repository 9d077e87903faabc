"""`session.variables("plant")`: named values behind one tag, as a mapping.

What this program added is its own and changes here; everything else is read from a mirror that is filled by a
subscription, opened when first looked at. Must not know packets.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringcast.client.mesh.views import open_view
from ringcast.errors import ClosedError
from ringcast.model.closing import Closing
from ringcast.model.place import AUTO
from ringcast.model.policy import EveryCycle, Policy, view
from ringcast.tag import Tag
from ringcast.variables.following import VariablesSubscription
from ringcast.variables.owner import Owner
from ringcast.variables.requests import Browsed, OwnerInfo, Requests

if TYPE_CHECKING:
    from ringcast.client.attachment import Attachment

logger = logging.getLogger("ringcast")

EVERYTHING = ("**",)
MIRROR_S = 5.0
"""How long looking at a variable waits for the first full packet."""


class Variables(Closing):
    """Made by `session.variables`. Thread-safe. `name in`, `len`, iterating and `[name]` are as with a dictionary, over
    the variables of all owners; `[name] = value` changes one's own, and asks the owner of any other to change it."""

    def __init__(
        self, attachment: Attachment, tag: Tag[Any], *, period_s: float, frame_s: float, on_join: bool,
        chunk_bytes: int, heads_up: bool,
    ) -> None:  # fmt: skip
        for name, value, least in (("period_s", period_s, 0.0), ("frame_s", frame_s, 0.0)):
            if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= 86400:
                raise ValueError(f"{name} is a number of seconds from 0 to 86400, not {value!r}")
        if not isinstance(chunk_bytes, int) or not 128 <= chunk_bytes <= 60_000:
            raise ValueError(f"chunk_bytes is a whole number from 128 to 60000, not {chunk_bytes!r}")
        self._attachment = attachment
        self._tag = tag
        self._settings = (float(period_s), float(frame_s), on_join, chunk_bytes, heads_up)
        self._lock = threading.Lock()
        self._owner: Owner | None = None
        self._mirror: VariablesSubscription | None = None
        self._requests = Requests(attachment, self)
        self._closed = False
        attachment.owns(self)

    @property
    def tag(self) -> Tag[Any]:
        return self._tag

    # ---------------------------------------------------------------- what is one's own

    def add(self, name: str, value: Any, event_ns: int | None = None) -> int:
        """Own a variable of that name; its type is that of its first value: float, int, bool, str, bytes, or a
        one-dimensional array of float64, float32, int64 or int32. Returns its index.

        Raises ValueError (no such name is possible, or this program has it), TypeError (no such type), ClosedError,
        and what `tag.publisher` does.
        """
        return self.owned().table.add(name, value, event_ns)

    def add_many(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> NDArray[np.uint32]:
        """`add` for each; the indices, in that order. Raises as `add` does; those before a bad one are added."""
        add = self.owned().table.add
        pairs = values.items() if isinstance(values, Mapping) else values
        return np.array([add(name, value) for name, value in pairs], dtype=np.uint32)

    def remove(self, name: str) -> None:
        """Give up an own variable. A later one of that name is another one. Raises KeyError."""
        if self._owner is None or not self._owner.table.remove(name):
            raise KeyError(f"this program has no variable {name!r} to remove; only its owner can")

    def __setitem__(self, name: str, value: Any) -> None:
        """Raises KeyError (nobody has it), TypeError, ValueError; for a variable of somebody else as `ask_set` does."""
        if self._owner is None or not self._owner.table.set(name, value):
            self.ask_set({name: value})

    def set(self, name: str, value: Any, event_ns: int | None = None) -> None:
        """Change an own variable; `event_ns` is when it happened (UTC). Raises KeyError, TypeError, ValueError."""
        if self._owner is None or not self._owner.table.set(name, value, event_ns):
            raise KeyError(f"this program has no variable {name!r}; add it, or assign with [] to ask its owner")

    def set_many(self, indices: ArrayLike, values: ArrayLike, event_ns: int | None = None) -> None:
        """Change own float variables, by the indices that `add` and `index` give. All have the same time. Raises
        ValueError, KeyError (some are no float variables of this program; nothing is changed then)."""
        if self._owner is None:
            raise KeyError("this program has no variables; add some first")
        where = np.ascontiguousarray(indices, dtype=np.uint32)
        if strangers := self._owner.table.strangers(where):
            raise KeyError(f"{strangers} of these indices are no float variables of this program")
        self._owner.table.set_at(where, np.ascontiguousarray(values, dtype=np.float64), event_ns)

    def index(self, names: Iterable[str]) -> NDArray[np.uint32]:
        """The indices of own variables. Raises KeyError."""
        if self._owner is None:
            raise KeyError("this program has no variables; add some first")
        found = []
        for name in names:
            index = self._owner.table.index(name)
            if index is None:
                raise KeyError(f"this program has no variable {name!r}")
            found.append(index)
        return np.array(found, dtype=np.uint32)

    def flush(self, full: bool = False) -> int:
        """Send what changed now, without waiting for the cycle; how many chunks were sent. Raises ClosedError,
        TagDestroyed."""
        return self._owner.flush(full) if self._owner is not None else 0

    def ticks(self, period_s: float, *, heads_up: bool = True) -> Iterator[int]:
        """Moments `period_s` apart, each when it has come, for whoever changes variables in step and sends them
        himself: `for _ in plant.ticks(0.01): plant["rpm"] = ...; plant.flush()`. One that is late comes at once, and
        the next ones stay where they were. Yields each as `time.monotonic_ns()`; ends when the variables are closed.

        From 2 ms on, a heads-up goes to all who follow shortly before each tick, so that the way is warm and they look
        out for the packet; not with `heads_up=False`. Raises ValueError (no such period, or cycles run by themselves),
        and what `add` does.
        """
        if not isinstance(period_s, int | float) or isinstance(period_s, bool) or not 0 < period_s <= 86400:
            raise ValueError(f"period_s is a number of seconds from 0 to 86400, not {period_s!r}")
        owner = self.owned()
        if owner.period_s > 0:
            raise ValueError(
                f"these variables are sent every {owner.period_s:g} s by themselves; open them with period_s=0 to send "
                "them in step with your own ticks"
            )
        return owner.ticks(float(period_s), heads_up)

    @property
    def own(self) -> list[str]:
        """The names of one's own variables."""
        return self._owner.table.names() if self._owner is not None else []

    @property
    def late(self) -> int:
        """Own variables that were not sent within their period, so far."""
        return self._owner.late if self._owner is not None else 0

    def owned(self) -> Owner:
        """The owner's side, made when first needed. Raises what `tag.publisher` does, ClosedError."""
        with self._lock:
            if self._closed:
                raise ClosedError("variables")
            if self._owner is None:
                period_s, frame_s, on_join, chunk_bytes, heads_up = self._settings
                self._owner = Owner(
                    self._tag, period_s=period_s, frame_s=frame_s, on_join=on_join, chunk_bytes=chunk_bytes,
                    heads_up=heads_up,
                )  # fmt: skip
                self._requests.serve(self._owner.publisher.incarnation)
            return self._owner

    # ---------------------------------------------------------------- what is others'

    def subscribe(
        self, *patterns: str, policy: Policy | None = None, at: str = AUTO, transport: str = "",
        reliable: bool = False, frame_s: float = 1.0, busy_poll: bool = False, look_out: bool = True,
    ) -> VariablesSubscription:  # fmt: skip
        """Follow variables by name or wildcard: `*` stands for any letters within a segment, `**` for any at all;
        nothing means all of them.

        `policy` is EveryCycle() (the default), Periodic(...) or OnChange(...); it and the selection are applied by a
        proxy, so that what nobody wants does not travel. `at` is where the proxy sits: "publisher", "node:NAME" or
        "subscriber"; equal wishes share one proxy and one stream. `frame_s` is how often the proxy repeats everything.
        With `busy_poll` the subscription's thread waits on a core of its own, without sleeping. With `look_out` it does
        so for a moment, where it pays and for at most a twentieth of the time: after an owner's heads-up, and for the
        rest of a packet that has begun to come.
        Whoever asks for a variable that nobody has gets it when somebody has it.
        Raises ValueError, TypeError, QosMismatch, DaemonUnavailable, ClosedError, ForkedError.
        """
        if not all(isinstance(pattern, str) and pattern for pattern in patterns):
            raise ValueError(f"names and wildcards of variables are texts, not {patterns!r}")
        selected = patterns or EVERYTHING
        if selected == EVERYTHING and (policy is None or policy == EveryCycle()):
            return VariablesSubscription(
                self._attachment, self._tag, selected, at=at, transport=transport, reliable=reliable,
                busy_poll=busy_poll, look_out=look_out,
            )  # fmt: skip
        wanted = view(
            self._tag.name, policy or EveryCycle(), selected, at, self._attachment.connection.welcome.node,
            self._tag.attributes.at, frame_s,
        )  # fmt: skip
        tag: Tag[Any] = Tag(self._attachment, open_view(self._attachment, wanted, self._tag.attributes), None)
        return VariablesSubscription(
            self._attachment, tag, selected, at=AUTO, transport=transport, reliable=reliable, busy_poll=busy_poll,
            look_out=look_out,
        )  # fmt: skip

    @property
    def mirror(self) -> VariablesSubscription:
        """Everything that others own, kept up to date from the first look on. Raises as `subscribe` does."""
        with self._lock:
            if self._closed:
                raise ClosedError("variables")
            if self._mirror is None:
                self._mirror = self.subscribe()
            return self._mirror

    def wait(self, *names: str, timeout: float | None = None) -> None:
        """Wait until these variables are known here; without names, until all are. Raises TimeoutError."""
        mirror = self.mirror
        mirror.wait_complete(timeout)
        seen = 0
        while not all(self._knows(name) for name in names):
            seen = mirror.wait_newer(seen, timeout)

    def ask(self, *names: str, timeout: float = 2.0) -> dict[str, Any]:
        """The values of these variables as their owners have them now, not as the mirror has them: on demand.

        Raises KeyError (nobody has one), TimeoutError, BrokenError (the owner died meanwhile).
        """
        return self._requests.get(names, timeout)

    def ask_set(self, values: Mapping[str, Any], timeout: float = 2.0) -> None:
        """Have the owner of each variable change it; returns when they have. Raises KeyError (nobody has one),
        TypeError and ValueError (the owner's words), TimeoutError, BrokenError (the owner died meanwhile)."""
        self._requests.set(values, timeout)

    def browse(self, *patterns: str, timeout: float = 2.0) -> list[Browsed]:
        """Which variables owners have now, of that name or wildcard: asked of each owner, not read from the mirror.
        Raises TimeoutError, BrokenError (an owner died meanwhile)."""
        return self._requests.browse(list(patterns or EVERYTHING), timeout)

    def owners(self, timeout: float = 2.0) -> list[OwnerInfo]:
        """Who has variables, how many, and how they are sent: asked of each. Raises TimeoutError, BrokenError."""
        return self._requests.info(timeout)

    # ---------------------------------------------------------------- as a mapping

    def _knows(self, name: str) -> bool:
        return (self._owner is not None and self._owner.table.index(name) is not None) or name in self.mirror

    def settled(self) -> VariablesSubscription:
        """The mirror, with what there is to know."""
        mirror = self.mirror
        if not mirror.complete and (self._owner is None or self._tag.publishers()):
            try:
                mirror.wait_complete(MIRROR_S if any(p.alive for p in self._tag.publishers()) else 0.0)
            except TimeoutError:
                logger.debug("no full packet of %r within %g s", self._tag.name, MIRROR_S)
        return mirror

    def __getitem__(self, name: str) -> Any:
        """The newest value here. Raises KeyError when nobody has such a variable."""
        if self._owner is not None and self._owner.table.index(name) is not None:
            return self._owner.table.get(name)
        return self.settled()[name]

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def __contains__(self, name: object) -> bool:
        own = self._owner is not None and isinstance(name, str) and self._owner.table.index(name) is not None
        return own or name in self.settled()

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self.own, *self.settled()]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def keys(self) -> list[str]:
        return list(self)

    def items(self) -> list[tuple[str, Any]]:
        return [(name, self[name]) for name in self]

    # ---------------------------------------------------------------- the end

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Send what changed last, and give up all that is one's own. A second call does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._requests.close()
        if self._owner is not None:
            self._owner.close()
        if self._mirror is not None:
            self._mirror.close()

    def __repr__(self) -> str:
        return f"<Variables of {self._tag.name!r}{' closed' if self._closed else ''}>"
