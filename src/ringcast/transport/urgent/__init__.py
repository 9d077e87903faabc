"""What makes a channel urgent, at one end of it: the marking of its sockets, the schedules of its threads."""
