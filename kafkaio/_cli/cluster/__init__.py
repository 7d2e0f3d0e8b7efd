"""Commands for brokers, controllers, transactions, and the protocol itself."""
