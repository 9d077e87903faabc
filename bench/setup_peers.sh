#!/bin/sh
# Makes .venv-peers, the environment of the peers that the benchmarks run beside Ringcast. Run again, it does nothing.
# A peer that cannot be installed is named, with the reason, and left out; the benchmarks go on without it.
set -eu

bench=$(cd "$(dirname "$0")" && pwd)
venv=$(dirname "$bench")/.venv-peers
python=${PYTHON:-$(command -v python3.11 || command -v python3)}

have=$(cat "$venv/.peers.sum" 2>/dev/null || true)
want=$(cat "$bench/peers.txt" "$bench/setup_peers.sh" | cksum)
if [ "$have" = "$want" ]; then
    exit 0
fi

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
log=$(mktemp)
trap 'rm -rf "$log" "${work:-}"' EXIT
complete=yes

# One by one, so that a peer without a wheel for this machine does not take the others with it.
for peer in $(grep -v '^#' "$bench/peers.txt"); do
    echo "peers: $peer"
    if ! "$venv/bin/python" -m pip --quiet --disable-pip-version-check install --prefer-binary "$peer" >"$log" 2>&1; then
        complete=no
        echo "skipped $peer: $(grep -i error "$log" | tail -n 1)" >&2
    fi
done

# The distribution's nats-server, unpacked rather than installed: installing it would start a service, and need root.
if ! command -v nats-server >/dev/null && [ ! -x "$venv/debian/usr/sbin/nats-server" ]; then
    echo "peers: nats-server"
    work=$(mktemp -d)
    chmod 755 "$work"
    fetch() { (cd "$work" && apt-get -qq download nats-server) >"$log" 2>&1; }
    # The package lists may be missing or stale on a fresh machine.
    if fetch || { apt-get -qq update >"$log" 2>&1 && fetch; }; then
        dpkg-deb -x "$work"/nats-server_*.deb "$venv/debian"
    else
        complete=no
        echo "skipped nats-server: $(tail -n 1 "$log")" >&2
    fi
fi

# An incomplete environment is tried again next time.
[ "$complete" = no ] || echo "$want" >"$venv/.peers.sum"
