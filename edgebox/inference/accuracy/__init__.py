"""How good a family's variants are: labelled or unlabelled pictures in, a accuracy_report each out.

`labelled` and its readers find pictures and truth; `journey` runs variants over pictures as
cameras send them; `judging` turns what they find into figures; `worth` sets aside what is not
worth keeping.
"""
