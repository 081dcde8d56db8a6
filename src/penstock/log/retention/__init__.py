"""Retention of what is needed: which trims are due, and the thread that asks for them."""
