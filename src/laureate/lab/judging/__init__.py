"""From numbers to verdicts: pure functions that read no file and start no process."""
