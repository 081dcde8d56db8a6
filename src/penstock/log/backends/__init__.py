"""Backends of the log: in a folder of this machine, or in JetStream."""
