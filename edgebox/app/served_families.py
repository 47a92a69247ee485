"""The families that a running box serves, in the forms that its parts use; they may change.

The parts hold these collections themselves, so that a change is seen everywhere at once. They are
changed on the event loop only.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from edgebox.domain.model_family import FamilyName, Variant, VariantName
from edgebox.inference.family import Family, InputSpec
from edgebox.runtime.box import Box


@dataclass(slots=True)
class ServedFamilies:
    """Families that are served, their variants, inputs and labels."""

    families: list[Family] = field(default_factory=list)
    variants: dict[VariantName, Variant] = field(default_factory=dict)
    """Offered variants. Those of a removed family stay for frames that are on their way, until it
    is withdrawn."""
    left: dict[FamilyName, Family] = field(default_factory=dict)
    """Removed families that are not withdrawn yet."""
    inputs: dict[FamilyName, InputSpec] = field(default_factory=dict)
    labels: dict[FamilyName, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, families: Iterable[Family]) -> "ServedFamilies":
        """Return these families."""
        made = cls()
        for family in families:
            made.add(family)
        return made

    def add(self, family: Family) -> None:
        """Add a family; an earlier one of its name was withdrawn."""
        self.families.append(family)
        self.variants.update({variant.name: variant for variant in family.offered})
        self.inputs[family.name] = family.input
        self.labels[family.name] = family.labels

    def remove(self, name: str) -> None:
        """Serve a family no more; what frames that are on their way need of it stays."""
        self.left |= {family.name: family for family in self.families if family.name == name}
        self.families[:] = [family for family in self.families if family.name != name]

    def withdraw(self, name: FamilyName) -> None:
        """Take away what a removed family has left; nothing may run on it any more."""
        for variant in self.left.pop(name).offered:
            self.variants.pop(variant.name, None)


def tell_of_missing_models(box: Box) -> None:
    """Publish which models that were set for cameras are not served."""
    for camera, overrides in box.overrides.items():
        for kind, name, there in (
            ("pipeline", overrides.pipeline, overrides.pipeline in box.models.pipelines),
            ("model", overrides.family, overrides.family in box.families),
        ):
            if name is not None and not there:
                gone = f"{camera} was given the {kind} {name}, which is not served"
                box.notices.publish("warning", f"{gone}; its hello decides", camera)
