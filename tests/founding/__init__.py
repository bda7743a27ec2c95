"""One test for each requirement of the founding documents that once did not work; each docstring quotes it."""
