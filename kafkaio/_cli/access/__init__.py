"""Commands for rights and limits: ACLs, users, tokens, quotas."""
