"""SHIM until the labs' own generator is merged."""
import nbformat
from assistant.cli.notebooks import originals
def notebook_of(key):
    path = next(originals().glob(f"labs/[0-9]*-{key}.ipynb"))
    nb = nbformat.read(path, 4)
    for c in nb.cells:
        if c.cell_type == "code": c.outputs = []; c.execution_count = None
    return nb
