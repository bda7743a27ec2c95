"""Pure text: encodings, Markdown, diffs, Unicode, credentials, planted instructions. Nothing here reads a file."""
