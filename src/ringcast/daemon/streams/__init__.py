"""Streams between nodes: routes, opening, outgoing, incoming, and the receiving ends."""
