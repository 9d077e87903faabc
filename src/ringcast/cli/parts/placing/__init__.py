"""What verbs share that show or change where proxies sit in a running mesh."""
