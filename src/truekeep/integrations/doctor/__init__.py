"""The doctor: finds what is broken in the set-up, says where, and mends what can be mended without asking anybody.

Looking changes nothing at all. Mending removes and rebuilds what is derived, finishes what a killed run left, closes
what others could read; it never rewrites what a person wrote, and no byte of memory. `examine` is the way in.
"""
