"""One adapter per peer behind the interface in `ends`. An adapter imports its library and nothing of the harness."""
