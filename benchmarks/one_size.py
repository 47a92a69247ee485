"""Writes a bundled family with one variant only, so that no plan changes what is run."""

import re
from pathlib import Path

from edgebox.inference.zoo import bundled_folders


def write_one_size(
    folder: Path, bundled: str, side_px: int, name: str, *, after: str | None = None
) -> Path:
    """Write the family's folder, and return it.

    Args:
        folder: made; its parent is there.
        bundled: the family that comes with edgebox.
        side_px: the width of its variant.
        name: of the new family; its variant is NAME-SIDE.
        after: the name of the new family whose features it goes on from; None: it is given
            pictures.
    """
    source = next(each for each in bundled_folders() if each.name == bundled)
    manifest = (source / "family.toml").read_text(encoding="utf-8")
    head, *tables = re.split(r"(?m)^(?=\[\[)", manifest)
    kept = [t for t in tables if not t.startswith("[[variants]]") or f"width_px = {side_px}\n" in t]
    text = "".join((head, *kept)).replace(f'name = "{bundled}', f'name = "{name}')
    text = re.sub(r'(?m)^after = ".*"$', f'after = "{after}"', text)
    folder.mkdir()
    (folder / "family.toml").write_text(text, encoding="utf-8")
    for model in source.glob("*.onnx"):
        (folder / model.name).symlink_to(model.resolve())
    return folder
