"""Proxies that place themselves (`at="auto"`): what is measured for it, what the mesh looks like, where proxies go."""
