"""The transaction coordinators of the embedded broker.

They keep their state in ``__transaction_state``, in Kafka's format, and write markers
to the partitions of a transaction after its end was answered.
"""
