"""Settings of server and plug-in, each with its doc, unit, bounds and default."""
