"""How a placement is found: integer program, cheap special cases, and exhaustive search as the oracle. Pure."""
