"""Modules that start or talk to a JVM. Importing the package itself needs no PySpark."""
