"""Speed side by side with peers, and how it grows. Never run by the tests."""
