"""Rivals that Penstock's own mechanisms are compared with."""
