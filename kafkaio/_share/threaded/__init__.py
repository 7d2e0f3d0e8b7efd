"""A share consumer whose core runs in a thread of its own (``io_thread``)."""
