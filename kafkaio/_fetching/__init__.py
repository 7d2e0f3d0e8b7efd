"""Fetching for any reader: what a consumer and a reader of ranges have in common.

The two decide differently what is fetched and when: a consumer's loops run ahead of it
in the background, a reader of ranges fetches when it is asked. What a fetch says on the
wire, what the answer says of a partition, and which broker is asked is the same, and
stands here.
"""
