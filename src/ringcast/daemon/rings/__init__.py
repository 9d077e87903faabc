"""The rings on this node: what is here, who registered it, memory budget, fan-out, sharing, pacing."""
