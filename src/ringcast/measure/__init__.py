"""What is measured on a channel, as pure functions of samples and counts: `relate`, `latency`, `traffic`, `video`."""
