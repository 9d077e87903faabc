"""What a running mesh needs: a problem from what daemons measured (`observed`), and when to move (`settling`). Pure."""
