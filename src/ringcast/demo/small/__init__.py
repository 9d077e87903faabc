"""What `ringcast demo` shows: publishers and subscribers, each a process of its own, and what starts and ends them."""
