"""What runs a proxy's policies: a process per node, started by the daemon while somebody wants a view that is made there."""
