"""What can be seen of a node: listings, liveliness, telemetry, metrics."""
