"""`ringcast secure`: close a mesh to strangers."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from ringcast.cli.parts.access import add_socket
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.parts.units import positive
from ringcast.cli.program import Misuse
from ringcast.errors import DaemonUnavailable, RingcastError
from ringcast.security.errors import BadInvitation

if TYPE_CHECKING:
    from ringcast.security.authority import Authority
    from ringcast.security.invitation import Invitation

HELP = "Close a mesh to strangers: every node proves its name by a certificate before it is listened to."

EPILOG = """\
Three commands close a mesh. On one machine, which becomes the mesh's authority:
  ringcast secure init                       makes the authority, and this node's certificate
  ringcast secure invite                     prints an invitation, and waits for the one who uses it
On each other machine, with the invitation:
  ringcast secure join ringcast1-...         gets this node's certificate
Then start the daemons again: one that listens on an address others can reach uses the certificate by itself.

An invitation admits one node and ends after ten minutes. 'revoke' ends what a node was given: whoever stole it loses
its links, and the other nodes are told. The authority's folder holds the key to the mesh: keep a copy of it offline.

examples:
  ringcast secure init --name base
  ringcast secure invite --name robot2 --host 10.0.0.1
  ringcast secure join ringcast1-... --name robot2
  ringcast secure show
  ringcast secure revoke robot2
  ringcast secure rotate                     a new key and certificate for the authority's own node
  ringcast secure invite --renew --name robot2   then 'ringcast secure join ...' there: the same for another node
"""

_HEADS = ("node", "certificate", "valid until", "state")


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    init = actions.add_parser("init", help="make an authority here, and this node's certificate")
    _add_name(init)
    init.add_argument("--mesh", default="", metavar="NAME", help="named in the authority's certificate")
    invite = actions.add_parser("invite", help="invite one node; waits until it has joined")
    invite.add_argument("--name", default="", metavar="NODE", help="only a node of this name (default: any new name)")
    invite.add_argument("--renew", action="store_true", help="the node named has a certificate, and gets another")
    invite.add_argument("--host", metavar="HOST", help="this machine's address, as the other reaches it")
    invite.add_argument("--port", type=int, metavar="PORT", help="listen on this port (default: 7418)")
    invite.add_argument("--minutes", type=positive, default=10.0, metavar="M", help="ends after M (default: 10)")
    join = actions.add_parser("join", help="get a certificate with an invitation")
    join.add_argument("invitation", metavar="INVITATION", help="what 'ringcast secure invite' printed")
    _add_name(join)
    show = actions.add_parser("show", help="this node's certificate, and on the authority those of all nodes")
    revoke = actions.add_parser("revoke", help="end the certificates of a node (on the authority)")
    revoke.add_argument("node", metavar="NODE", help="the node's name")
    rotate = actions.add_parser("rotate", help="a new key and certificate for this node (on the authority)")
    for one in (init, invite, join, show, revoke, rotate):
        one.add_argument("--identity", metavar="FOLDER", help="the identity's folder (default: the usual one)")
        add_json(one)
    for one in (join, revoke, rotate):
        add_socket(one)


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", metavar="NODE", help="this node's name (default: the host's)")


def run(args: argparse.Namespace) -> int:
    try:
        import cryptography  # noqa: F401
    except ImportError as exc:
        raise Misuse("certificates need the package cryptography: pip install 'ringcast[security]'") from exc
    from ringcast.security.folder import default_folder

    where = Path(args.identity).absolute() if args.identity else default_folder()
    actions = {"init": _init, "invite": _invite, "join": _join, "show": _show, "revoke": _revoke, "rotate": _rotate}
    return actions[args.action](args, where, Output(args.json))


def _init(args: argparse.Namespace, where: Path, output: Output) -> int:
    from ringcast.security.authority import Authority, fingerprint_words

    made = Authority.init(where, args.mesh, _name(args))
    fingerprint = fingerprint_words(made.certificate)
    if output.json:
        output.document({"folder": str(where), "fingerprint": fingerprint, "node": made.issued()[0].name})
        return 0
    output.line(f"{where}: the authority of this mesh, fingerprint {fingerprint}")
    output.line(f"this node is {made.issued()[0].name!r}; invite others with 'ringcast secure invite'")
    return 0


def _invite(args: argparse.Namespace, where: Path, output: Output) -> int:
    from ringcast.security.authority import Authority

    if args.renew and not args.name:
        raise Misuse("--renew needs --name: whose certificate is to be renewed?")
    joined = asyncio.run(_host(args, Authority(where), output))
    if output.json:
        output.record({"joined": joined})
    else:
        output.line(f"{joined} has joined")
    return 0


async def _host(args: argparse.Namespace, authority: Authority, output: Output) -> str:
    from ringcast.security.enrolment import PORT, Host, own_host

    host = Host(
        authority, name=args.name, renew=args.renew, on_refused=lambda reason: output.note(f"turned away: {reason}")
    )
    try:
        await host.open("0.0.0.0" if args.host is None else args.host, PORT if args.port is None else args.port)
    except OSError as exc:
        raise BadInvitation(f"cannot listen: {exc.strerror or exc}; choose another --port or --host") from exc
    word = host.invitation(args.host or own_host()).word()
    if output.json:
        output.record({"invitation": word})
    else:
        output.note(f"on the other machine, within {args.minutes:g} minutes:")
        output.line(f"ringcast secure join {word}")
    try:
        return await host.wait(args.minutes * 60)
    except TimeoutError:
        raise BadInvitation(f"nobody used it within {args.minutes:g} minutes") from None


def _join(args: argparse.Namespace, where: Path, output: Output) -> int:
    from ringcast.security import enrolment, folder, invitation

    asked = invitation.read(args.invitation)
    name = _name(args)
    renewed = (where / folder.NODE_KEY).exists()
    if renewed:
        name = _renewed_name(args, where, asked)
    try:
        made = asyncio.run(enrolment.join(asked, name, where))
    except (OSError, TimeoutError) as exc:
        raise BadInvitation(f"{asked.address} does not answer ({exc or 'it is silent'}); is 'invite' running?") from exc
    told = renewed and _reload(args.socket)
    if output.json:
        document = {"folder": str(where), "node": name, "until": made.not_valid_after_utc, "daemon_told": told}
        output.document(document)
        return 0
    output.line(f"{where}: this node is {name!r}, until {made.not_valid_after_utc:%Y-%m-%d}")
    if told:
        output.line("its daemon uses the new certificate from now on")
        return 0
    output.line("start its daemon: ringcast daemon --listen 0.0.0.0:7417 --peer ADDRESS-OF-ANOTHER-NODE")
    return 0


def _renewed_name(args: argparse.Namespace, where: Path, asked: Invitation) -> str:
    """Of the node whose identity is there, if the invitation is of its own mesh. Raises Misuse, SecurityError."""
    from ringcast.security import certificates, folder

    known = certificates.name_of(certificates.read(folder.read(where, folder.NODE)))
    authority = certificates.read(folder.read(where, folder.AUTHORITY))
    if (args.name or known) != known or certificates.fingerprint(authority) != asked.fingerprint:
        raise Misuse(f"{where} has an identity already; see 'ringcast secure show', or give another --identity")
    return known


def _show(args: argparse.Namespace, where: Path, output: Output) -> int:
    from ringcast.security.authority import Authority, fingerprint_words, has_authority
    from ringcast.security.identity import Identity

    identity = Identity(where)
    issued = Authority(where).issued() if has_authority(where) else []
    rows = [
        (one.name, one.serial[:16], f"{one.until:%Y-%m-%d}", "revoked" if one.revoked else "valid") for one in issued
    ]  # fmt: skip
    if output.json:
        output.document({
            "folder": str(where), "node": identity.name, "until": identity.until,
            "fingerprint": fingerprint_words(identity.authority), "issued": issued,
        })  # fmt: skip
        return 0
    output.line(f"{where}: node {identity.name!r}, certificate until {identity.until:%Y-%m-%d}")
    output.line(f"authority: fingerprint {fingerprint_words(identity.authority)}")
    if rows:
        output.table(_HEADS, rows)
    return 0


def _revoke(args: argparse.Namespace, where: Path, output: Output) -> int:
    from ringcast.security.authority import Authority

    ended = Authority(where).revoke(args.node)
    told = _reload(args.socket)
    if output.json:
        output.document({"revoked": [one.serial for one in ended], "daemon_told": told})
        return 0
    output.line(f"revoked {len(ended)} certificate{'s' * (len(ended) != 1)} of {args.node}")
    if not told:
        output.note("no daemon runs here: the other nodes learn of it when this one's is started")
    return 0


def _rotate(args: argparse.Namespace, where: Path, output: Output) -> int:
    from ringcast.security.authority import Authority
    from ringcast.security.identity import Identity

    name = Identity(where).name
    Authority(where).equip(where, name, renew=True)
    told = _reload(args.socket)
    if output.json:
        output.document({"node": name, "folder": str(where), "daemon_told": told})
    else:
        when = "its daemon uses them from now on" if told else "its daemon uses them when it is started"
        output.line(f"{name} has a new key and certificate; {when}")
    return 0


def _reload(path: str | None) -> bool:
    """Have this node's daemon read its folder again."""
    from ringcast.cli.run.stop import find
    from ringcast.control.socket_path import default_socket_path

    try:
        _, process = find(os.path.abspath(path) if path else default_socket_path())
    except DaemonUnavailable:
        return False
    try:
        signal.pidfd_send_signal(process, signal.SIGHUP)
    except OSError as exc:
        raise RingcastError(f"the daemon could not be told ({exc.strerror}); reload it yourself, by SIGHUP") from exc
    finally:
        os.close(process)
    return True


def _name(args: argparse.Namespace) -> str:
    from ringcast.daemon.machine import node_name

    return str(args.name or node_name())
