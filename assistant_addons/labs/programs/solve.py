"""Solve many small systems with model.py on the pretended device, and judge the solution by its residual.

Usage: solve.py [MOST_COPIES]. With a number, the data may cross between device and CPU so often at most. The model runs
in a program of its own, apply.py; here is no torch, and nothing that the model could change.
"""

import json
import math
import random
import subprocess
import sys
from array import array

SYSTEMS, SIZE, WORST = 256, 8, 1e-4  # the smallest singular value: inverting loses as many digits, solving does not
# A solver's backward error is a small multiple of SIZE times the precision: N. Higham, Accuracy and Stability, ch. 9.
MOST_ERROR = 8 * SIZE * 2**-23  # of FP32


def product(left, right):
    """Multiply two matrices."""
    columns = list(zip(*right, strict=True))
    return [[sum(map(float.__mul__, row, column)) for column in columns] for row in left]


def rotation():
    """Draw an orthogonal matrix, by Gram and Schmidt."""
    rows = []
    for _ in range(SIZE):
        row = [random.gauss(0, 1) for _ in range(SIZE)]
        for _ in range(2):  # the second time takes away what rounding left
            for other in rows:
                share = sum(map(float.__mul__, row, other))
                row = [value - share * part for value, part in zip(row, other, strict=True)]
        length = math.hypot(*row)
        rows.append([value / length for value in row])
    return rows


def system():
    """Draw a matrix whose singular values run from 1 down to WORST, with a side whose solution is small, in FP32."""
    scales = [WORST ** (at / (SIZE - 1)) for at in range(SIZE)]
    matrix = product([list(map(float.__mul__, row, scales)) for row in rotation()], rotation())
    side = [row[0] for row in product(matrix, [[random.gauss(0, 1)] for _ in range(SIZE)])]
    return array("f", [value for row in matrix for value in row]), array("f", side)


def error(matrix, side, solved):
    """Return the backward error of a solution: its residual for the size of matrix and solution."""
    left = [sum(map(float.__mul__, matrix[at * SIZE : (at + 1) * SIZE].tolist(), solved)) for at in range(SIZE)]
    return math.dist(left, side) / (math.hypot(*matrix) * math.hypot(*solved) or math.inf)


def main(most=""):
    """Judge the model; end with a sentence on what is wrong."""
    systems = [system() for _ in range(SYSTEMS)]
    given = {
        "size": SIZE,
        "matrices": [one.tolist() for one, _ in systems],
        "sides": [one.tolist() for _, one in systems],
    }
    with open(".given.json", "w", encoding="utf-8") as file:
        json.dump(given, file)
    with open(".solved.json", "w", encoding="utf-8"):
        pass
    done = subprocess.run([sys.executable, "apply.py"], check=False)
    with open(".solved.json", encoding="utf-8") as file:
        text = file.read()
    if done.returncode or not text:
        sys.exit(done.returncode or "model.py ended the program")
    answer = json.loads(text)
    if "fault" in answer:
        sys.exit(answer["fault"])
    errors = [error(*system, solved) for system, solved in zip(systems, answer["solved"], strict=True)]
    if not all(one <= MOST_ERROR for one in errors):
        sys.exit(f"the solution is not accurate: its backward error is over {MOST_ERROR:.0e}")
    print(f"on the device    {answer['seconds']:.3f} s, of them {answer['copying']:.3f} s in {answer['copies']} copies")
    print(f"on the CPU alone {answer['alone']:.3f} s")
    if most and answer["copies"] > int(most):
        sys.exit(f"the solution is right, but it took {answer['copies']} copies: {most} are allowed")
    print("the solution is right")


main(*sys.argv[1:])
