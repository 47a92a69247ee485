"""Checks the models that a request names for a camera."""

from typing import Protocol

from edgebox.domain.errors import UnknownNameError
from edgebox.runtime.model_choice import ModelChoice, UnknownFamilyError, UnknownPipelineError


class Naming(Protocol):
    """Settings that may name a model."""

    @property
    def family(self) -> str | None:
        """The model family; empty or None: none is named."""
        ...

    @property
    def pipeline(self) -> str | None:
        """The pipeline; empty or None: none is named."""
        ...


def check_models(models: ModelChoice, where: str, before: Naming | None, after: Naming) -> None:
    """Check that newly named models are served, and are given pictures.

    Names that were there before stay, so that other settings can be changed once a model is gone.

    Args:
        models: those of the box. While it starts it has none yet, and nothing is checked.
        where: what the request changes, for the message.
        before: what was named; None: nothing.
        after: what is named now.

    Raises:
        UnknownNameError: there is no such model; the message lists those there are.
    """
    same = before is not None and (before.family, before.pipeline) == (after.family, after.pipeline)
    if same or not models.families:
        return
    try:
        models.of(after.family, after.pipeline)
    except UnknownFamilyError as error:
        raise UnknownNameError(f"{where}.family: {error}") from None
    except UnknownPipelineError as error:
        raise UnknownNameError(f"{where}.pipeline: {error}") from None
