"""What torch prints on a machine whose driver is older than the wheel's CUDA; the words are torch's own."""

import sys

sys.exit(
    "RuntimeError: The NVIDIA driver on your system is too old (found version 12080). "
    "Please update your GPU driver by downloading and installing a new version from the URL: "
    "http://www.nvidia.com/Download/index.aspx Alternatively, go to: https://pytorch.org to install a PyTorch "
    "version that has been compiled with your version of the CUDA driver."
)
