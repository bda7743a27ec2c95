"""`truekeep doctor`: finds problems with the installation and fixes the safe ones. Start at `registry.run_checks`.

Checks change nothing. Fixes rebuild derived data, finish or remove what killed runs left, and make exposed files
private; they never change configuration or memory.
"""
