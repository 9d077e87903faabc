"""How cost grows with the number of things: what is measured, and what order it may have."""
