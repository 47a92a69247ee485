"""`python -m edgebox`: the same as the `edgebox` command."""

from edgebox.cli import main

main()
