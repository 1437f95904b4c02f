"""Sum up lengths by an operator that a compiled extension brings."""

import fbgemm_gpu
import torch

lengths = torch.tensor([1, 2, 3])
offsets = torch.ops.fbgemm.asynchronous_complete_cumsum(lengths)
assert offsets.tolist() == [0, 1, 3, 6]
print(f"torch {torch.__version__} and fbgemm_gpu {fbgemm_gpu.__version__} agree")
