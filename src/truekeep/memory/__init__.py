"""Memory files: cards, MEMORY.md, journals, staged edits, transactions, the ledger and history."""
