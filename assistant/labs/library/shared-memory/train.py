"""Load a few batches of pictures by PyTorch's data loader, as loading.json says."""

import json
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset

PICTURE = (3, 512, 512)  # 3 MB each, in FP32


class Pictures(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        return torch.full(PICTURE, index / len(self))


if __name__ == "__main__":
    loading = json.loads(Path("loading.json").read_text(encoding="utf-8"))
    torch.set_num_threads(1)
    loader = DataLoader(
        Pictures(), batch_size=loading["batch"], num_workers=loading["workers"],
        **({"prefetch_factor": 1} if loading["workers"] else {}),
    )  # fmt: skip
    for batch in loader:
        assert batch.shape[1:] == PICTURE
    print(f"{len(loader)} batches of {loading['batch']} pictures were loaded")
