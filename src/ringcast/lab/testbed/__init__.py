"""A network of namespaces on this machine, and processes on its nodes."""
