"""How right `truekeep check` is on documents of public repositories, judged by hand: see README.md."""
