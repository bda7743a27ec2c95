"""The walk: one scripted life of a memory, on three machines and a fourth, through the real programs.

`story` is to be read: each step is a command as somebody types it and what must be seen. `world` has the machines,
`repositories` the code, `agents` the harnesses, `browser` who reviews there, `accounts` what must hold at the end.

python -m tests.support.walk         walks it and prints it
python -m tests.support.walk docs    writes docs/walk.md from it
"""
