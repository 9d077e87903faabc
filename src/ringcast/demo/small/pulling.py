"""The demo's pulls: histories read at any index, that of a publisher which is long gone among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringcast.cli.parts.values import show
from ringcast.demo.small.roles import CAMERA, SENSOR, STARTUP, THERMOMETER
from ringcast.demo.small.scene import Pulled
from ringcast.errors import HistoryError

if TYPE_CHECKING:
    from ringcast.message import Message
    from ringcast.session import Session

_BACK = 3


def pull(session: Session) -> list[Pulled]:
    """Raises Empty when somebody has not sent enough yet."""
    return [_latest(session), _back(session), _by_number(session), _overwritten(session), _gone(session)]


def _latest(session: Session) -> Pulled:
    with session.tag(CAMERA, create=False).history() as history:
        return Pulled("the newest frame", "latest()", _shown(history.latest()))


def _back(session: Session) -> Pulled:
    with session.tag(THERMOMETER, create=False).history() as history:
        oldest, newest = history.bounds()
        back = min(_BACK, newest - oldest)
        return Pulled("an older temperature", f"latest(back={back})", _shown(history.latest(back=back)))


def _by_number(session: Session) -> Pulled:
    with session.tag(SENSOR, create=False).history() as history:
        oldest, newest = history.bounds()
        seq = (oldest + newest) // 2
        return Pulled("a reading by its number", f"at({seq})", _shown(history.at(seq)))


def _overwritten(session: Session) -> Pulled:
    """Asking for too much is answered with what there is."""
    with session.tag(SENSOR, create=False).history() as history:
        try:
            found = _shown(history.at(0))
        except HistoryError as exc:
            found = f"{type(exc).__name__}: held are {exc.oldest} to {exc.newest}"
        return Pulled("the very first reading", "at(0)", found)


def _gone(session: Session) -> Pulled:
    with session.tag(STARTUP, create=False).history() as history:
        steps: list[Message[Any]] = list(history.since(0))
        found = "; ".join(str(message.data["step"]) for message in steps)
        return Pulled("what a publisher that has exited said", "since(0)", found)


def _shown(message: Message) -> str:
    return f"#{message.seq}: {show(message.data, 80)}"
