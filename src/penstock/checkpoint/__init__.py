"""A checkpoint location as files, and bringing it up to a query's last marker."""
