"""What `ringcast doctor` looks at: one file per thing that can be wrong, each a list of findings."""
