"""How far other nodes' clocks are ahead, and how sure that is: exchanges in, a line and its bound out. Pure."""
