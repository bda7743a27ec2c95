"""How right verify is: cards about an old commit, the newest commit as the world, git as the judge.

The labels are made here from git's own records, Python's ast and universal-ctags. Nothing of this folder imports the
product; it is only called, through its command line, by run.py.
"""
