"""Is every answer right when the driver is killed in the middle? No time is measured here."""
