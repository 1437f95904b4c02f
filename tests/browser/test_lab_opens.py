"""The ground that the wizard's browser tests stand on."""

from __future__ import annotations

import json


def test_a_cell_runs_in_a_real_jupyterlab(open_notebook, jupyter_server):
    """A notebook opens alone, its cell runs in this environment's kernel, and the output is seen."""
    cell = {"cell_type": "code", "id": "one", "metadata": {}, "execution_count": None, "outputs": []}
    source = "from assistant.model.plan import Backend\nprint('six', 'backends:', len(Backend))"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": [{**cell, "source": source}]}
    (jupyter_server.root_dir / "trivial.ipynb").write_text(json.dumps(notebook))

    page = open_notebook("trivial.ipynb")
    page.locator(".jp-Cell").first.click()
    page.keyboard.press("Shift+Enter")

    page.get_by_text("six backends: 6").wait_for()
    assert len(jupyter_server.ask("sessions")) == 1
