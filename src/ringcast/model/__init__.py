"""Values that everybody shares: names, attributes, identities, places. Pure."""
