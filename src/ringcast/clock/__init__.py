"""How far other nodes' clocks are from this one's, and how sure that is: exchanges in, a line and its bound out. Pure."""
