"""The server's HTTP face: what comes in, what goes out, and the control of queries."""
