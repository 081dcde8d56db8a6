"""Words shared by every part: positions, entries, markers, schemas. No I/O here."""
