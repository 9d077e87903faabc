"""What a closed mesh promises, proven by attack; and what its seals cost."""
