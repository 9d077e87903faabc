"""What `ringcast lab` can do: each module is one word after it, with `HELP`, `configure(parser)` and `run(args)`."""
