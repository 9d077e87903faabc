"""What verbs are made of."""
