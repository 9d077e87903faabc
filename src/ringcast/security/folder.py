"""The folder that holds a node's identity: what is in it, who may read it, and how it is written.

    authority.pem   the certificate of the mesh's authority; its fingerprint is the mesh's
    node.pem        this node's certificate, signed by the authority
    node.key        this node's private key; only its owner reads it
    revoked.pem     the newest list of revoked certificates, signed by the authority
    authority.key   the authority's private key: on the one machine where `ringcast secure init` ran
    issued.json     there too: the certificates that were issued

Invariants: a private key is never readable by others, not even while it is written; a file is replaced whole or not at
all.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from ringcast.security.errors import BadIdentity

AUTHORITY, AUTHORITY_KEY = "authority.pem", "authority.key"
NODE, NODE_KEY = "node.pem", "node.key"
REVOKED, ISSUED = "revoked.pem", "issued.json"


def default_folder() -> Path:
    """RINGCAST_IDENTITY, or `ringcast/identity` of the user's configuration; root's is in /etc."""
    if told := os.environ.get("RINGCAST_IDENTITY"):
        return Path(told)
    if os.geteuid() == 0:
        return Path("/etc/ringcast/identity")
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "ringcast" / "identity"


def read(folder: Path, name: str) -> bytes:
    """Raises BadIdentity."""
    path = folder / name
    try:
        if name.endswith(".key"):
            _check_private(path)
        return path.read_bytes()
    except OSError as exc:
        raise BadIdentity(str(path), exc.strerror or str(exc), "see 'ringcast secure --help'") from exc


def write(folder: Path, name: str, data: bytes) -> None:
    """Raises BadIdentity."""
    path = folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")  # readable by its owner alone
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                if not name.endswith(".key"):
                    os.fchmod(file.fileno(), 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as exc:
        raise BadIdentity(str(path), exc.strerror or str(exc), "choose another folder with --identity") from exc


def _check_private(path: Path) -> None:
    mode = path.stat().st_mode
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise BadIdentity(
            str(path), f"others may read this private key (mode {stat.S_IMODE(mode):o})", f"chmod 600 {path}"
        )
