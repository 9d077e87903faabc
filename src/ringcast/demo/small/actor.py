"""One process of the demo: `python -m ringcast.demo.small.actor NAME SOCKET`, until its standard input ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import ringcast
from ringcast.demo.small import publishers, subscribers
from ringcast.demo.small.ending import Ending

_PLAY: dict[str, Callable[[ringcast.Session, Ending], None]] = {
    play.__name__: play
    for play in (
        publishers.sensor,
        publishers.camera,
        publishers.thermometer,
        publishers.startup,
        subscribers.eager,
        subscribers.slow,
        subscribers.reliable,
        subscribers.viewer,
        subscribers.display,
        subscribers.everything,
    )
}


def main(argv: Sequence[str]) -> int:
    name, socket_path = argv
    try:
        with ringcast.connect(socket_path, start=False, program=f"demo {name}") as session:
            _PLAY[name](session, Ending())
    except ringcast.RingcastError as exc:
        print(exc, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
