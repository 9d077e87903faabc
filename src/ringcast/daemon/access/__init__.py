"""Who may do what: rights of clients and other nodes, taking them away, limits, and the record of what was refused."""
