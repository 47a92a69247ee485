"""How good the variants of a family are: pictures in, with or without labels; reports out.

`labelled` and its readers find pictures and truth; `inference_run` runs variants over pictures
as cameras send them; `evaluation` turns what they find into figures; `pruning` finds variants that
are dominated by others.
"""
