"""Transports that choose themselves (`transport="auto:METRIC"`): what is heard on each node, models, the choice."""
