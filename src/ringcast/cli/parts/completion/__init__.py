"""What shells need to complete the command line: its grammar, and a script for each shell."""
