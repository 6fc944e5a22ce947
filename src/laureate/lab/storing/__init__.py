"""What was measured, kept on this machine: one SQLite file, and where it lies."""
