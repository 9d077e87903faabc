"""Pull requests of clients and other nodes, and pull buffers."""
