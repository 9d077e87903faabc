"""Who may come in, what each may do, and what is told of those who were refused."""
