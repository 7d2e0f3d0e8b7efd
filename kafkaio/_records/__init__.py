"""The codec of records: batches to records and back.

There are two implementations of the loops over records: compiled (the ``.pyx`` file
with its ``.pxi`` files), and in pure Python (`_pure`, `_cursor`, `_columns`, `_append`
and others). The pure one is the reference; the tests compare the compiled one with
it, errors included. `_impl` chooses between them. What reads records imports `batch`,
and what writes them `builder` and `compression`, so that it loads no readers.
"""
