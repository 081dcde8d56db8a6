"""The tagged shared log: decisions (pure), the store under them, and what is visible."""
