"""What `ringcast demo` shows: a cast of publishers and subscribers, each a process of its own, and who directs them."""
