"""A day of traffic in minutes: machines that leave handoffs, people who edit, and everything that goes wrong meanwhile.

`python -m tests.support.soak FOLDER` lives it and prints an account as JSON. The bench `soak` lives a whole one; the
tests, a short one. Files, git repositories, rsync and every truekeep are real; machines are folders, reached by an
`ssh` that stays here; one seed decides what happens, the machine's own pace decides at which instruction.
"""
