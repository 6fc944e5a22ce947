"""GVP: what the paper says, the trials that re-measure it, and speed beside peers."""
