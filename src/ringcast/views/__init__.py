"""What runs policies: a process per node, which the daemon starts while somebody wants a view that is made there."""
