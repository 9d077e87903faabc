"""Paper 003: channels with priorities, at a loaded network card and at a loaded switch."""
