"""Checks what runs on this machine: ports, systemd units, containers and, only when asked for, URLs.

It looks from outside and without privileges. No name from a memory is ever run, no port is connected to, and nothing is
started or changed. Only lsof, systemctl, docker and podman are run, to list: with fixed arguments, no shell, no input,
a time limit and an output limit. The answer is "absent" only if the system lists everything of that kind and the name
is not in the list; otherwise it is "unknown", with the reason. Nothing here raises. `system_claims` turns
the answers into verdicts.
"""
