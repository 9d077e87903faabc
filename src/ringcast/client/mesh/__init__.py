"""What a client asks of the mesh as a whole."""
