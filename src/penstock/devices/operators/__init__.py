"""Operations over Arrow columns with Spark's semantics, on the CPU: no Spark, no JVM, no I/O.

`expressions` describes what is computed of a row, `evaluate` computes it; `arithmetic`,
`comparison` and `casts` are the functions. `aggregate`, `expand`, `join` and `order` work on whole
rows, `parse` and `json_lines` make rows of text lines. Null, not a number, minus zero, decimals and
overflow are Spark's.
"""
