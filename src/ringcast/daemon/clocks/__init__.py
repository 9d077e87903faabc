"""Clocks of other nodes: probes and their socket, what is known of each node, and who is told of steps."""
