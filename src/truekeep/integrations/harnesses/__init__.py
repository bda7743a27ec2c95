"""The fitting room: truekeep put into the harnesses of a machine and into a repository, and out again.

`plan` decides and touches nothing; `apply` writes down what it will touch, keeps what was there, and then does it;
`undo` is the way back, and `check` looks at what stands. `claude`, `codex` and `openclaw` know one harness each,
`bundle` and `rule` are the words that are put in, `record` remembers. Harnesses are changed through their own
commands.
"""
