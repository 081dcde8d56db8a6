"""Benchmarks: each compares in one command what it claims to compare, and checks the answers."""

from __future__ import annotations
