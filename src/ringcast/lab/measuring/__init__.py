"""What experiments measure with and what they hand back: ends, samples, rows, pictures, the papers' figures."""
