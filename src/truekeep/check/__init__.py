"""`truekeep check`: documents of a repository, checked against its code, without a workspace."""
