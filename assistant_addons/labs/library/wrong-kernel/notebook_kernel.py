"""Start a Jupyter kernel by its name, as a notebook does, and let it compute with torch."""

import re
import sys

from jupyter_client.manager import start_new_kernel

CODE = "import torch; assert torch.ones(2).sum() == 2; print('torch computes in this kernel')"
manager, client = start_new_kernel(60, sys.argv[1], extra_arguments=["--log-level=ERROR"])
try:
    printed = []
    client.execute_interactive(CODE, timeout=90, output_hook=lambda message: printed.append(message["content"]))
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
for content in printed:
    text = content.get("text") or "\n".join(content.get("traceback", []))
    print(re.sub(r"\x1b\[[0-9;]*m", "", text).strip())
