"""Group membership as pure machines: what a member does, and when it gives up what.

``states`` has the table, ``classic`` the machine of the classic protocol,
``revoke_ledger`` the fate of each assignment, ``assignors`` the leader's arithmetic.
"""
