"""The daemon of a node: pure parts (table, budget, attributes), the local role, and the shell."""
