"""Commands for who may do what, and how much: ACLs, users, tokens, quotas."""
