"""Each row of docs/performance.md, kafkaio beside other clients, in one run.

``python -m benchmarks.rows --json FILE`` measures; see `__main__`.
"""
