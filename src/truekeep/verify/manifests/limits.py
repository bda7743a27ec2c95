"""How much of a file is read. What is beyond a limit is a stranger's mistake, or meant ill."""

from __future__ import annotations

LARGEST = 2 << 20  # bytes of a file that people write
LARGEST_LOCK = 20 << 20  # bytes of a file that a program writes
MOST_LINES = 100_000
MOST_LOCK_LINES = 1_000_000
MOST_ENTRIES = 100_000
MOST_BRACKETS = 500_000  # of JSON, where each becomes an object before anybody looks at it
MOST_COMMAS = 2_000_000
LONGEST_LINE = 2_000  # characters that a line reader looks at
LONGEST_NAME = 300
DEEPEST = 40
