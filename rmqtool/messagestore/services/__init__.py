"""What makes the engine a message queue: progress, groups, retries, delays, transactions, consumers.

Each stands on `engine.Engine`, which is what they may do with a store; the engine knows none of them.
"""
