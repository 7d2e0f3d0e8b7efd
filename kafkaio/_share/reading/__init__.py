"""What is between fetched data and the user: buffers, batches, iterators."""
