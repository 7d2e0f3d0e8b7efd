"""Reading: fetched records in order, and their way into the user's hands."""
