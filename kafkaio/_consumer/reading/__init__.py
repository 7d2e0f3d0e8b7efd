"""Reading: fetched records in order, and how the user takes them."""
