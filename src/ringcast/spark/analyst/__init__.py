"""For whoever looks at a lake: a session that knows its tables by name, what is known of each, and charts."""
