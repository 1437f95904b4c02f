"""Solve many small systems with a model on the pretended device, and judge the solution by its residual.

Usage: solve.py MODEL.PY [MOST_COPIES]. With a number, the data may cross between device and CPU so often at most. What
it prints is measured: seconds on the device, seconds of them in copies, and seconds of the same model on the CPU alone.
"""

import importlib.util
import sys
import time
import warnings

import torch

SYSTEMS, SIZE, WORST = 256, 8, 1e-4  # the smallest singular value: inverting loses as many digits, solving does not
# A solver's backward error is a small multiple of SIZE times the precision: N. Higham, Accuracy and Stability, ch. 9.
MOST_ERROR = 8 * SIZE * torch.finfo(torch.float32).eps


def load(path):
    """Load the learner's model."""
    spec = importlib.util.spec_from_file_location("model", path)
    model = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(model)
    return model


def systems():
    """Draw systems whose singular values run from 1 down to WORST, with sides whose solutions are small."""
    left, right = (torch.linalg.qr(torch.randn(SYSTEMS, SIZE, SIZE)).Q for _ in range(2))
    matrices = (left * torch.logspace(0, torch.tensor(WORST).log10().item(), SIZE)) @ right
    return matrices, matrices @ torch.randn(SYSTEMS, SIZE, 1)


def error(matrices, sides, solved):
    """Return the largest backward error of all systems: the residual for its matrix and solution."""
    matrices, sides, solved = matrices.double(), sides.double(), solved.double()
    norms = torch.linalg.matrix_norm(matrices) * torch.linalg.vector_norm(solved, dim=(1, 2))
    return (torch.linalg.vector_norm(matrices @ solved - sides, dim=(1, 2)) / norms).max().item()


def timed(solve, matrices, sides):
    """Return what `solve` gives and the seconds that it took."""
    begun = time.perf_counter()
    solved = solve(matrices, sides)
    return solved, time.perf_counter() - begun


def main(path, most=""):
    """Judge the model; end with a sentence on what is wrong."""
    warnings.filterwarnings("ignore")  # as many a program does
    matrices, sides = systems()
    torch.linalg.solve(matrices, sides)  # the first call loads the library, which is not to be timed
    far = matrices.to("pretend"), sides.to("pretend")
    try:
        with torch.no_grad():
            solve = load(path).solve
            torch.pretend.reset_copies()
            solved, seconds = timed(solve, *far)
            copies, copying = torch.pretend.copies, torch.pretend.copy_seconds
            _, alone = timed(solve, matrices, sides)
    except SystemExit:
        sys.exit("model.py ended the program")
    if not isinstance(solved, torch.Tensor) or solved.shape != sides.shape:
        sys.exit("the solution has another shape than the right sides")
    if solved.device != far[0].device:
        sys.exit(f"the solution is on {solved.device}, and the program goes on on {far[0].device}")
    found = error(matrices, sides, solved.cpu())
    if not found <= MOST_ERROR:
        sys.exit(
            f"the solution is not accurate: its backward error is {found:.1e}, a solver's is under {MOST_ERROR:.0e}"
        )
    print(f"on the device    {seconds:.3f} s, of them {copying:.3f} s in {copies} copies")
    print(f"on the CPU alone {alone:.3f} s")
    if most and copies > int(most):
        sys.exit(f"the solution is right, but it took {copies} copies: {most} are allowed")
    print("the solution is right")


main(*sys.argv[1:])
