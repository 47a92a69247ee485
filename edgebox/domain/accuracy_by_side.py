"""Reads how accurate a variant is by the side of the object that its crop shows."""

from edgebox.domain.field_reader import FieldReader, is_number

KEY = "accuracy_by_side"
SIDE_MAX_PX = 65_536


def read_accuracy_by_side(table: FieldReader) -> tuple[tuple[float, float], ...]:
    """Return (side in px, accuracy) with rising sides; empty: the table does not have it."""
    if KEY not in table:
        return ()
    rows, found = table.raw(KEY), list[tuple[float, float]]()
    if not isinstance(rows, list) or not rows:
        raise table.wrong(KEY, "must be a list of [side in px, accuracy] pairs", rows)
    for row in rows:
        pair = isinstance(row, list) and len(row) == 2
        if not pair or not is_number(row[0], 0, SIDE_MAX_PX) or not is_number(row[1], 0, 1):
            what = f"must have pairs of a side from 0 to {SIDE_MAX_PX} px and an accuracy"
            raise table.wrong(KEY, f"{what} from 0 to 1", row)
        if found and row[0] <= found[-1][0]:
            raise table.wrong(KEY, "must have rising sides", row)
        found.append((float(row[0]), float(row[1])))
    return tuple(found)
