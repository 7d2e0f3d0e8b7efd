"""Authentication by SASL (RFC 4422, KIP-43), as pure machines.

``mechanism`` is the port of a mechanism, and each mechanism has a module of its own.
``exchange`` sends its messages in Kafka's requests and takes the answers.
"""
