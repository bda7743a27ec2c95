"""python -m truekeep"""

from truekeep.cli import main

main()
