"""What streams of tcp need around them: letting them in, and how they share the network."""
