"""Fetching for any reader: the parts that a consumer and a reader of ranges share.

The two differ in when and what they fetch: the loops of a consumer run ahead of it in
the background, and a reader of ranges fetches on demand. The messages, the choice of
the broker and the processing of a partition's part of an answer are the same.
"""
