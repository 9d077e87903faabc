"""What `ringcast pipeline` does besides running pipelines."""
