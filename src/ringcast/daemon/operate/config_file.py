"""Where a daemon's configuration file is looked for, and what holds when nothing is said.

The first of these counts: `--config`, RINGCAST_CONFIG (empty: no file), the user's own, the machine's. A file that was
named must be there; one that is only looked for need not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ringcast.clock.probe import PERIOD_S
from ringcast.control.socket_path import default_socket_path
from ringcast.daemon.access.tokens import Permits
from ringcast.daemon.access.tokens import read as read_tokens
from ringcast.daemon.machine import max_files, memory_bytes, node_name
from ringcast.daemon.operate.configuration import File, read
from ringcast.daemon.operate.in_force import SOCKET_VARIABLE, Settings, resolve
from ringcast.daemon.rings.budget import MAX_LINGERING_PER_TAG
from ringcast.daemon.table.leases import DEFAULT_LEASE_S
from ringcast.errors import BadConfiguration
from ringcast.model import addresses
from ringcast.model.schedule import MOST_PRIORITY
from ringcast.security.errors import SecurityError
from ringcast.security.folder import NODE, default_folder
from ringcast.security.rules import Rules
from ringcast.transport.urgent.queues import MOST_SHARE

ENVIRONMENT_VARIABLE = "RINGCAST_CONFIG"
MACHINE_FILE = "/etc/ringcast/ringcast.toml"
MAX_BYTES = 1024 * 1024


def search_path() -> list[str]:
    """Where a file is looked for when none is named."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return [os.path.join(home, "ringcast", "ringcast.toml"), MACHINE_FILE]


def find_file(given: str | None) -> str | None:
    """The file to read, or None. Raises BadConfiguration when one that was named is not there."""
    named = os.environ.get(ENVIRONMENT_VARIABLE) if given is None else given
    if named == "":
        return None
    if named is None:
        return next((path for path in search_path() if os.path.isfile(path)), None)
    if not os.path.isfile(named):
        who = "--config" if given is not None else ENVIRONMENT_VARIABLE
        raise BadConfiguration(os.path.abspath(named), 0, f"there is no such file, and {who} names it")
    return os.path.abspath(named)


def load(path: str) -> File:
    """Raises BadConfiguration."""
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_BYTES + 1).decode()
    except OSError as exc:
        raise BadConfiguration(path, 0, f"it cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise BadConfiguration(path, 0, "it is not text in UTF-8") from exc
    if len(text) > MAX_BYTES:
        raise BadConfiguration(path, 0, f"it is larger than {MAX_BYTES} bytes")
    return read(text, path)


def settle(given: str | None, flags: Mapping[str, Any]) -> Settings:
    """What is in force with this --config ('' is none) and these flags, which were checked. Raises BadConfiguration,
    ValueError."""
    path = find_file(given)
    socket = os.environ.get(SOCKET_VARIABLE)
    environment = {"socket": os.path.abspath(socket) if socket else None}
    settings = resolve(defaults(), load(path) if path is not None else None, environment, flags)
    if settings.values["peers"] and not settings.values["listen"]:
        where = settings.origins["peers"]
        raise ValueError(
            f'peers need listen = ["HOST:PORT"] (--listen): the others must be able to reach this node ({where})'
        )
    metrics_permits(settings)
    return _with_identity(settings)


def metrics_permits(settings: Settings) -> Permits | None:
    """Who may read metrics; None: whoever reaches them. Raises BadConfiguration, ValueError."""
    address, named = settings.values["metrics"], settings.values["metrics_rules"]
    if not address or named == "none":
        return None
    if named is not None:
        return read_tokens(Path(named))
    if addresses.is_loopback(addresses.split(address)[0]):
        return None
    raise ValueError(
        f"others can reach the metrics at {address} ({settings.origins['metrics']}): name a file with tokens, "
        "metrics_rules = FILE (--metrics-rules), or 'none' to show them to whoever comes; or serve them at 127.0.0.1"
    )


def _with_identity(settings: Settings) -> Settings:
    """A node whose certificate is used has the name that stands in it. Raises ValueError."""
    where = identity_folder(settings)
    if where is None:
        return settings
    try:
        from ringcast.security.identity import Identity

        name = Identity(where).name
    except ImportError as exc:
        raise ValueError(
            f"the identity in {where} needs {exc.name}: pip install 'ringcast[security]', or use --identity none"
        ) from exc
    except SecurityError as exc:
        raise ValueError(str(exc)) from exc
    if settings.origins["name"] == "default":
        values, origins = settings.values | {"name": name}, settings.origins | {"name": "its certificate"}
        return Settings(values=values, origins=origins, file=settings.file)
    if settings.name != name:
        raise ValueError(
            f"the node is called {settings.name!r} ({settings.origins['name']}), and its certificate in {where} is for "
            f"{name!r}; leave the name out, or get a certificate for it: ringcast secure join"
        )
    return settings


def is_exposed(settings: Settings) -> bool:
    """Others can reach this node, and it asks nobody who they are."""
    return identity_folder(settings) is None and _reachable(settings)


def _reachable(settings: Settings) -> bool:
    return any(not addresses.is_loopback(addresses.split(address)[0]) for address in settings.values["listen"])


def identity_folder(settings: Settings) -> Path | None:
    """Of the identity that is in force: the one that was named, or for a node that others can reach the usual one."""
    named = settings.values["identity"]
    if named is not None:
        return None if named == "none" else Path(named)
    usual = default_folder()
    return usual if _reachable(settings) and (usual / NODE).exists() else None


def rules_of(settings: Settings) -> Rules:
    return Rules(settings.values["rules"], own=os.geteuid())


def audit_path(settings: Settings) -> str:
    """The file for what is refused: the one that was named, or one beside the socket; '' for none."""
    named = settings.values["audit"]
    return f"{settings.values['socket']}.audit" if named is None else "" if named == "none" else str(named)


def defaults() -> dict[str, Any]:
    return {
        "name": node_name(), "mesh": "", "socket": default_socket_path(), "listen": (), "peers": (), "scout": True,
        "identity": None, "audit": None, "metrics": None, "metrics_rules": None,
        "log": "text", "log_level": "warning", "limits.memory": memory_bytes() // 2,
        "limits.lingering_rings": max_files() // 8, "limits.lingering_rings_per_tag": MAX_LINGERING_PER_TAG,
        "limits.tag_lease_s": DEFAULT_LEASE_S, "limits.cpu_share": None,
        "limits.sched_priority": MOST_PRIORITY, "limits.sched_share": None, "limits.wake_latency": None,
        "limits.link_rate": None,
        "limits.link_share": MOST_SHARE,
        "limits.user_connections": 4096, "limits.requests_per_s": 10_000, "limits.user_tags": 8192,
        "limits.user_rings": 16_384, "limits.user_memory": None,
        "clock.source": "own", "clock.probe_s": PERIOD_S,
        "tags": {}, "transports": (), "rules": (),
    }  # fmt: skip
