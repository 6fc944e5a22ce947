"""What computes behind the claims: one module a paper, one pure function an experiment."""
