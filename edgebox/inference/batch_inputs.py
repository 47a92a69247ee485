"""The inputs of an executor's batches: a tensor of pictures, or tensors of features by name."""

import numpy as np

from edgebox.domain.model_family import Variant, VariantName
from edgebox.inference.cuda_runtime import CudaRuntime
from edgebox.inference.executor_thread import BatchJob
from edgebox.inference.family import Family
from edgebox.inference.features import Features, stacked, stand_in
from edgebox.inference.session_store import Tensors
from edgebox.inference.tensors import InputTensors


class BatchInputs:
    """The inputs of one executor; one thread uses them."""

    def __init__(self, cuda: CudaRuntime | None = None) -> None:
        """Start empty; `cuda` page-locks the buffer of pictures."""
        self._pictures = InputTensors(cuda)
        self._stood_in: tuple[VariantName | None, Features] = (None, ())

    def of(self, family: Family, variant: Variant, job: BatchJob) -> Tensors:
        """Return the input of a batch, valid until the next call."""
        if family.after is None:
            canvases = [each for each in job.inputs if isinstance(each, np.ndarray)]
            return self._pictures.fill(family.input, variant, canvases, job.batch_size)
        given = [
            each if isinstance(each, tuple) else self._stand_in(family, variant)
            for each in job.inputs
        ]
        return stacked(family.features, variant, given, job.batch_size)

    def release(self) -> None:
        """Give the memory back."""
        self._pictures.release()

    def _stand_in(self, family: Family, variant: Variant) -> Features:
        """Return features that stand for those of any picture; only the last ones are kept."""
        name, features = self._stood_in
        if name != variant.name:
            features = stand_in(family.features, variant)
            self._stood_in = variant.name, features
        return features
