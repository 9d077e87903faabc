"""Where proxies belong: what `ringcast lab run placement` solves, times and compares."""
