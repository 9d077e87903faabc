"""The search and rescue of `ringcast demo`: its nodes, its processes, and what is shown of them."""
