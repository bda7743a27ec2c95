"""How right and how quiet truekeep is on public OpenClaw workspaces that nobody here wrote: see README.md."""
