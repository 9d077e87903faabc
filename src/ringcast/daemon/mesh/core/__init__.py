"""Membership, failure detection and gossip: `(event, now_ns) -> actions`. Pure."""
