"""The clients of this node: their sockets, their processes, and what they ask for; one daemon per socket."""
