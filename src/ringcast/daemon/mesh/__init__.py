"""This node among others: the pure core in `core/`, and its shell: links, services, scouting."""
