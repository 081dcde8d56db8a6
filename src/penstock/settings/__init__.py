"""Every setting, with its doc, unit, bound and default."""
