"""Prints a database as a dump: python -m tests.storage.released DATABASE."""

import sqlite3
import sys

from tests.storage.released import dump

print(dump(sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)), end="")
