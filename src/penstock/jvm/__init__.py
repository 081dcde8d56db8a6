"""Finds the plug-in's jar and asks a running JVM about it; the only code that touches py4j."""

from __future__ import annotations
