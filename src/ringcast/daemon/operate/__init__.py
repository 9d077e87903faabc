"""The daemon as a program: settings and where they come from, signals, the service manager, logs."""
