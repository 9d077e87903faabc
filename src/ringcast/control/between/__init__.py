"""What daemons tell each other about streams that run, so that one of them can decide something. Values."""
