"""What can go wrong between who asks and who serves. Pure."""

from __future__ import annotations

from ringcast.errors.base import BrokenError, RingcastError


class NobodyServes(BrokenError):
    """There is no server of the tag, or there was none in time."""

    def __init__(self, tag: str, waited_s: float = 0.0) -> None:
        self.tag = tag
        self.waited_s = waited_s
        waited = f" within {waited_s:g} s" if waited_s else ""
        super().__init__(
            f"nobody serves {tag!r}{waited}; start the program that calls tag.serve, or look at 'ringcast tags'"
        )


class AlreadyServed(RingcastError):
    """A tag has one server."""

    def __init__(self, tag: str, node: str, pid: int, program: str = "") -> None:
        self.tag = tag
        self.node = node
        self.pid = pid
        self.program = program
        super().__init__(
            f"{tag!r} is served already, by process {pid} ({program}) on node {node!r}; end that first, or serve "
            "another tag"
        )


class ServerGone(BrokenError):
    """The server went away before it answered: its process died, it was closed, or its node cannot be reached. Whether
    it did what was asked is not known."""

    def __init__(self, tag: str, server: str) -> None:
        self.tag = tag
        self.server = server
        super().__init__(
            f"the server of {tag!r} ({server}) went away before it answered; whether it did it is not known"
        )


class AskFailed(RingcastError):
    """The server's function raised. `kind` is the name of what it raised, `text` what that said."""

    def __init__(self, tag: str, kind: str, text: str) -> None:
        self.tag = tag
        self.kind = kind
        self.text = text
        super().__init__(f"the server of {tag!r} raised {kind}: {text}")
