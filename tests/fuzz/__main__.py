"""`python -m tests.fuzz NAME SECONDS`: fuzz one reader with atheris (libFuzzer).

What fails is written to `tests/fuzz/found/NAME`: move it to `tests/fuzz/inputs/NAME` once it is
mended, and it is a test.
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["edgebox"]):
    from tests.fuzz.harnesses import HARNESSES


def main() -> None:
    """Run the harness that the command line names."""
    if len(sys.argv) != 3 or sys.argv[1] not in HARNESSES:
        sys.exit(f"python -m tests.fuzz NAME SECONDS, NAME one of: {', '.join(HARNESSES)}")
    name, seconds = sys.argv[1], sys.argv[2]
    harness = HARNESSES[name]
    found = Path(__file__).parent / "found" / name
    found.mkdir(parents=True, exist_ok=True)
    # libFuzzer ends the process, so nobody would remove a folder in use.
    corpus = Path(tempfile.gettempdir()) / "edgebox-fuzz" / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(harness.inputs(name)):
        (corpus / f"first-{number}").write_bytes(data)
    words = corpus.with_suffix(".words")
    escaped = ("".join(f"\\x{byte:02x}" for byte in word) for word in harness.words)
    words.write_text("".join(f'"{word}"\n' for word in escaped))
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={harness.length_max}",
        f"-artifact_prefix={found}/",
        *([f"-dict={words}"] if harness.words else []),
        "-timeout=30",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], harness.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
