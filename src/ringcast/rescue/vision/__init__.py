"""What can be computed from images: spots, rays, places. NumPy only; the pipelines run it inside Arrow functions."""
