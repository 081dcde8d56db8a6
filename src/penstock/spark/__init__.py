"""Everything that starts or talks to a JVM. Importing the package itself needs no PySpark."""
