"""The accuracy of a family's variants, measured on pictures with or without labels.

`labelled` and its readers find pictures and truth; `inference_run` runs variants over pictures
as cameras send them; `evaluation` turns what they find into figures; `pruning` finds variants that
are dominated by others.
"""
