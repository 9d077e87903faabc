"""Who may come in: whether the daemon is open to the network, until when certificates are good, and the rules."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

from ringcast.cli.parts.checks.finding import Finding, limited, ok
from ringcast.control.answers import Status
from ringcast.control.status import SettingStatus
from ringcast.errors import RingcastError
from ringcast.model.addresses import is_loopback, split

SOON = timedelta(days=21)
"""A daemon warns from then on, too."""
_RENEW = "On the authority 'ringcast secure rotate' or 'ringcast secure invite --renew --name NODE' gives a new one."


def look(socket_path: str | None) -> list[Finding]:
    from ringcast.control.socket_path import default_socket_path

    path = os.path.abspath(socket_path) if socket_path else default_socket_path()
    status, settings = _ask(path)
    return [*_open(status, settings), *_identity(status), *_rules(status, settings)]


def _ask(path: str) -> tuple[Status | None, list[SettingStatus] | None]:
    """What the daemon says, as far as it answers this user."""
    import ringcast

    if not os.path.exists(path):
        return None, None
    try:
        with ringcast.connect(path, start=False, program="ringcast doctor") as session:
            status = session.status()
            try:
                return status, session.settings()
            except RingcastError:
                return status, None
    except RingcastError:
        return None, None


def _value(settings: list[SettingStatus] | None, key: str) -> str:
    """Of a setting, as it is shown; '' when that is not known."""
    return next((row.value.strip('"') for row in settings or () if row.key == key), "")


def _open(status: Status | None, settings: list[SettingStatus] | None) -> list[Finding]:
    name = "open to strangers"
    if status is None:
        return []
    if status.exposed:
        where = _value(settings, "listen") or "an address that others can reach"
        remedy = (
            "Whoever reaches it can join the mesh, read and write: close it with 'ringcast secure', or "
            "listen on 127.0.0.1."
        )
        return [limited(name, f"the daemon listens on {where} without an identity", remedy)]
    if _value(settings, "metrics_rules") == "none" and not is_loopback(split(status.metrics or "127.0.0.1:1")[0]):
        remedy = "They name tags, programs and nodes: name a file with tokens, metrics_rules in ringcast.toml."
        return [limited(name, f"metrics at {status.metrics} are for whoever comes", remedy)]
    reason = f"nodes prove their names (identity {status.identity})" if status.identity else "others cannot reach it"
    return [ok(name, f"no: {reason}")]


def _identity(status: Status | None) -> list[Finding]:
    from ringcast.security.folder import NODE, default_folder

    usual = default_folder()
    if status is not None and status.identity:
        return [judge_identity(Path(status.identity), in_force=True)]
    try:
        has_one = (usual / NODE).exists()
    except OSError:
        has_one = False
    return [judge_identity(usual, in_force=False)] if has_one else []


def judge_identity(where: Path, *, in_force: bool, now: datetime | None = None) -> Finding:
    """Of the certificate in a folder, and of the authority that signed it."""
    name = "certificate"
    less = "This node cannot join its mesh" if in_force else "A daemon that needs it does not start"
    try:
        from ringcast.security import certificates, folder

        node = certificates.read(folder.read(where, folder.NODE))
        authority = certificates.read(folder.read(where, folder.AUTHORITY))
        folder.read(where, folder.NODE_KEY)
        called = certificates.name_of(node)
    except ImportError as exc:
        remedy = f"{less}: pip install 'ringcast[security]' ({exc.name} is missing)."
        return limited(name, f"{where} cannot be read", remedy)
    except RingcastError as exc:
        return limited(name, f"{where} cannot be used", f"{less}: {exc}.")
    now = now or certificates.utc_now()
    ends = min(
        (node.not_valid_after_utc, f"of node {called!r}", _RENEW),
        (authority.not_valid_after_utc, "of the mesh's authority",
         "Make a new authority with 'ringcast secure init' in another folder, and have all nodes join it."),
    )  # fmt: skip
    until, whose, renew = ends
    value = f"{where}: that {whose} is good until {until:%Y-%m-%d %H:%M} UTC"
    if until < now:
        return limited(name, f"{value}, and it is over", f"{less}. {renew}")
    if until < now + SOON:
        days = (until - now).days
        remedy = f"Then no other node believes this one any more. {renew}"
        return limited(name, f"{value}, in {days} day(s)", remedy)
    return ok(name, value)


def _rules(status: Status | None, settings: list[SettingStatus] | None) -> list[Finding]:
    found = []
    if status is not None and (status.config or status.metrics):
        found += _files(status.config, settings)
    if settings is None:
        return found
    rules = [row.value for row in settings if row.key.startswith("rules[")]
    for_nodes = sum("node = " in value for value in rules)
    if status is not None and status.identity and not for_nodes:
        remedy = (
            "Every node of the mesh reads and writes everything, a stolen one too: give nodes rules in "
            "ringcast.toml (docs/security.md)."
        )
        found.append(limited("rules", f"{len(rules)} rule(s), none for other nodes", remedy))
    else:
        said = f"{len(rules)} rule(s), {for_nodes} of them for other nodes"
        found.append(ok("rules", said if rules else "none: only this user's programs"))
    return found


def _files(config: str, settings: list[SettingStatus] | None) -> list[Finding]:
    """Files with rules that the daemon could not read again."""
    from ringcast.daemon.access.tokens import read
    from ringcast.daemon.operate.config_file import load

    metrics = _value(settings, "metrics_rules")
    found = []
    for path in (config, metrics if metrics.startswith("/") else ""):
        try:
            if path:
                load(path) if path == config else read(Path(path))
        except RingcastError as exc:
            remedy = "The daemon goes on with what it read before, and does not start again with this."
            found.append(limited("file with rules", str(exc), remedy))
    return found
