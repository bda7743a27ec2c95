"""Connects truekeep to the harnesses of a machine and to repositories, and disconnects it again.

`plan` decides and touches nothing; `apply` records and backs up what it will change, then changes it; `undo`
disconnects; `status` reports. `claude`, `codex` and `openclaw` know one harness each, `plugin_files` and
`instruction_block` hold the installed text, `installed` is the record. Harnesses are changed through their own
commands.
"""
