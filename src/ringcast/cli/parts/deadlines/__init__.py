"""What `ringcast agent` knows of deadlines."""
