"""Start the Jupyter kernel `lab`, as a notebook does, and let it compute with torch."""

import re
import sys

from jupyter_client.manager import start_new_kernel

RIGHT = "torch computes in this kernel"
CODE = f"import torch; assert torch.linalg.det(2 * torch.eye(3)) == 8; print('{RIGHT}')"
manager, client = start_new_kernel(60, "lab", extra_arguments=["--log-level=ERROR"])
try:
    printed = []
    client.execute_interactive(CODE, timeout=90, output_hook=lambda message: printed.append(message["content"]))
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
texts = [content.get("text") or "\n".join(content.get("traceback", [])) for content in printed]
text = re.sub(r"\x1b\[[0-9;]*m", "", "".join(texts)).strip()
print(text)
sys.exit(text != RIGHT)
