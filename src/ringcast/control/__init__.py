"""Control messages between a client and its daemon, and how they travel. Data never comes this way."""
