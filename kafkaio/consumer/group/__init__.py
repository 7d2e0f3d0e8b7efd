"""The consumer's place in its group: membership, rebalances, commits."""
