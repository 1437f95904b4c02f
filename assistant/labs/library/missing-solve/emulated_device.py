"""Run a learner's model.py on an emulated device: "lacking" has no linalg.solve, "silent" sends it to the CPU.

Usage: emulated_device.py lacking|silent MODEL.PY. The arithmetic is real; only where it happens is pretended.
"""

import importlib.util
import sys
import time
import traceback

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

OPERATORS = {"aten::_linalg_solve_ex", "aten::linalg_lu_solve"}
TRIP_SECONDS = 0.005


class Lacking(TorchDispatchMode):
    """Refuses the operators, but for the helper's own second try on the CPU."""

    trips = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name
        if name in OPERATORS and not any(frame.name == "_round_trip" for frame in traceback.extract_stack(limit=20)):
            raise NotImplementedError(
                f"The operator '{name}' is not currently implemented for the MPS device. If you want this op to be "
                "considered for addition, comment on the tracking issue."
            )
        return func(*args, **(kwargs or {}))


class Silent(TorchFunctionMode):
    """Takes each solve to the CPU and says nothing; a trip costs what it costs on many a machine."""

    trips = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.linalg.solve:
            self.trips += 1
            time.sleep(TRIP_SECONDS)
        return func(*args, **(kwargs or {}))


def main(device, path):
    spec = importlib.util.spec_from_file_location("model", path)
    model = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(model)
    torch.manual_seed(0)
    systems, sides = torch.randn(64, 8, 8) + 24 * torch.eye(8), torch.randn(64, 8, 1)
    expected = torch.linalg.solve(systems, sides)
    with torch.no_grad(), DEVICES[device]() as emulated:
        solved = model.solve(systems, sides)
    if not isinstance(solved, torch.Tensor) or solved.shape != expected.shape:
        sys.exit("the solution has another shape")
    if not torch.allclose(solved, expected, atol=1e-4):
        sys.exit("the solution is wrong")
    if emulated.trips > 1:
        sys.exit("the result is right, but it took longer on the GPU than on the CPU alone")
    print("the solution is right")


DEVICES = {"lacking": Lacking, "silent": Silent}
main(*sys.argv[1:])
