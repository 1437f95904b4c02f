"""Holds inputs that a user gives against what a model takes: their names and types."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper

from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.onnx.graph import given_inputs
from assistant.onnx.inputs import Feeds


def refuse_unfit(model: ModelProto, given: Feeds) -> None:
    """Raise `BadInput` for inputs that the model lacks, that are missing, or of another type."""
    infos = {info.name: info for info in model.graph.input}
    names = _("The model takes these: {names}.", names=", ".join(info.name for info in given_inputs(model.graph)))
    for name in given:
        if name not in infos:
            raise BadInput(_("The model has no input {name}.", name=name), hint=names)
    for info in given_inputs(model.graph):
        if info.name not in given and info.type.WhichOneof("value") != "optional_type":
            raise BadInput(_("The input {name} is missing among those given.", name=info.name), hint=names)
    for name, array in given.items():
        if isinstance(array, np.ndarray) and infos[name].type.HasField("tensor_type"):
            _refuse_type(name, array, infos[name].type.tensor_type.elem_type)


def shapes_of(given: Feeds) -> dict[str, tuple[int, ...]]:
    """Return the shapes of inputs that are arrays, by name."""
    return {name: array.shape for name, array in given.items() if isinstance(array, np.ndarray)}


def _refuse_type(name: str, array: NDArray[Any], kind: int) -> None:
    if kind == TensorProto.STRING:
        fits, wanted = array.dtype.kind in "USO", "str"
    else:
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind))
        fits, wanted = array.dtype == dtype, dtype.name
    if not fits:
        message = _("The input {name} is {found}, and the model takes {wanted}.")
        raise BadInput(
            message.format(name=name, found=array.dtype.name, wanted=wanted), hint=_("Write it with that type.")
        )
