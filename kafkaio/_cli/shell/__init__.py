"""How every command runs: its options, the cluster, its output, questions."""
