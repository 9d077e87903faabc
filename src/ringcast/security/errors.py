"""What can be wrong with an identity, or with what proves one."""

from __future__ import annotations

from ringcast.errors import RingcastError


class SecurityError(RingcastError):
    """Base of what can be wrong with an identity, or with what proves one."""


class BadIdentity(SecurityError):
    """A folder that holds, or should hold, a node's identity."""

    def __init__(self, path: str, reason: str, remedy: str) -> None:
        self.path = path
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{path}: {reason}; {remedy}")


class BadCertificate(SecurityError):
    """A certificate, key, request or list that is not accepted."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class BadInvitation(SecurityError):
    """An invitation that cannot be read, or that nobody honours."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"this invitation is of no use: {reason}. Make another: ringcast secure invite")
