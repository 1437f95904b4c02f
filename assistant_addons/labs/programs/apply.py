"""Run model.py on the pretended device, and write what it gives and what that cost; solve.py starts this."""

import importlib.util
import json
import time
import warnings

spec = importlib.util.spec_from_file_location("model", "model.py")
model = importlib.util.module_from_spec(spec)
spec.loader.exec_module(model)  # before torch: what the model sets for it counts
import torch  # noqa: E402 - see above

warnings.filterwarnings("ignore")  # as many a program does
with open(".given.json", encoding="utf-8") as file:
    given = json.load(file)
size = given["size"]
matrices, sides = torch.tensor(given["matrices"]).view(-1, size, size), torch.tensor(given["sides"]).view(-1, size, 1)
far = matrices.to("pretend"), sides.to("pretend")
torch.linalg.solve(matrices, sides)  # the first call loads the library, which is not to be timed
with torch.no_grad():
    copies, copying, begun = torch.pretend.copies, torch.pretend.copy_seconds, time.perf_counter()
    solved = model.solve(*far)
    cost = {"seconds": time.perf_counter() - begun, "copies": torch.pretend.copies - copies}
    cost["copying"] = torch.pretend.copy_seconds - copying
    begun = time.perf_counter()
    model.solve(matrices, sides)
    cost["alone"] = time.perf_counter() - begun
if not isinstance(solved, torch.Tensor) or solved.shape != sides.shape:
    cost["fault"] = "the solution has another shape than the right sides"
elif solved.device != far[0].device:
    cost["fault"] = f"the solution is on {solved.device}, and the program goes on on {far[0].device}"
else:
    cost["solved"] = solved.cpu().double().view(-1, size).tolist()
with open(".solved.json", "w", encoding="utf-8") as file:
    json.dump(cost, file)
