"""The server's side of authentication for the embedded broker: SASL, TLS, tokens.

Written from the RFCs and from what Apache Kafka 4.3 was seen to answer. Nothing here
shares code with kafkaio's client (ADR 4), and nothing here knows of nodes or APIs: a
connection of the embedded broker has a session, and asks it what may come next.
"""
