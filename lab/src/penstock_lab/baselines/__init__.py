"""What Penstock's own mechanisms are compared with."""
