"""One set of functions from records to HTML."""
