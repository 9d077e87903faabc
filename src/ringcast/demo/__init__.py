"""What `ringcast demo` shows: the search and rescue, or the small one on a single node."""
