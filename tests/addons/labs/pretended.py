"""Run by the tests with a real torch: what the pretended device does with operators and copies, as JSON."""

import json
import time

import pretend
import torch
from fallback import cpu_fallback, explain_fallbacks

pretend.offer()
systems, sides = torch.randn(32, 8, 8) + 24 * torch.eye(8), torch.randn(32, 8, 1)
right = torch.linalg.solve(systems, sides)
far, near = (systems.to("pretend"), sides.to("pretend")), (systems, sides)


def told(work):
    """Return what one way of working gave, what crossed, and what it cost."""
    copies, slept, begun = torch.pretend.copies, torch.pretend.copy_seconds, time.perf_counter()
    try:
        with torch.no_grad():
            given = work()
    except Exception as error:  # noqa: BLE001 - each is compared with what is expected
        return {"error": type(error).__name__, "says": str(error)}
    cost = {"copies": torch.pretend.copies - copies, "slept": torch.pretend.copy_seconds - slept}
    cost |= {"least": cost["copies"] * pretend.LATENCY, "took": time.perf_counter() - begun}
    if not isinstance(given, torch.Tensor):
        return {"given": given, **cost}
    return {"device": given.device.type, "right": torch.allclose(given.cpu(), right, atol=1e-5), **cost}


def textbook():
    """Solve on the CPU and bring the result back."""
    return torch.linalg.solve(far[0].cpu(), far[1].cpu()).to(far[0].device)


def fallen_back():
    """Solve by the product's own fallback."""
    with cpu_fallback("pretend"):
        return torch.linalg.solve(*far)


def _round_trip():
    return torch.linalg.solve(*far)


def explained():
    """Return the operators that the device itself takes to the CPU."""
    with explain_fallbacks("pretend") as seen:
        torch.linalg.solve(*far)
    return [row.operator for row in seen.rows]


WAYS = {
    "solve": lambda: torch.linalg.solve(*far),
    "named like the fallback": _round_trip,
    "mixed": lambda: torch.linalg.solve(near[0], far[1]),
    "textbook": textbook,
    "fallback": fallen_back,
    "inverse": lambda: torch.linalg.inv(far[0]) @ far[1],
    "loop": lambda: torch.stack([torch.linalg.solve_ex(*pair)[0] for pair in zip(*far, strict=True)]),
    "explained": explained,
    "in place": lambda: (torch.ones(3, device="pretend").add_(1) * 2).sum().item(),
    "listed": lambda: torch.tensor([1.0, 2.0], device="pretend").tolist(),
    "made": lambda: [(torch.eye(3, device="pretend") @ torch.arange(3.0, device="pretend"))[2].item()],
    "shown": lambda: repr(torch.zeros(1, device="pretend")),
}
print(json.dumps({name: told(work) for name, work in WAYS.items()}))
