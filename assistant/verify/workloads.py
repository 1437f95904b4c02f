"""Small models, one for each kind of work that people bring; `child.py` loads them as checks.

Each is compared with itself in float64 on the CPU and then timed; nothing is downloaded.
"""

from __future__ import annotations

import base64
import copy
import struct
import time
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assistant.verify.child import Array, Checks, Compute, Module, Result, Target, Tensor

Model = Any  # torch is there once the target has imported it
TOLERANCE = 5e-3  # of float32 through a whole model; chosen
VOCABULARY, WIDTH, HEADS, LAYERS, PROMPT, TOKENS = 256, 128, 4, 3, 16, 32
MELS, FRAMES_PER_LETTER, SECONDS_PER_FRAME = 80, 4, 256 / 22050
LETTERS, FRAMES = 40, 24
BATCH, STEPS, RANK = 16, 8, 4


def compare(target: Target, model: Model, run: Callable[..., list[Tensor]], amount: float, unit: str) -> Result:
    """Compare a model on the device with itself in float64 on the CPU and, if they agree, measure the speed of both.

    `run` takes torch, the model and a device, and returns tensors. One run does `amount` of what `unit` counts per
    second, as 32 for "tokens/s". Return the results of `measure` and `measure_speed` in one, without agreement that of
    `measure` alone; sound is "slow" if playback is faster.
    """
    torch = target.torch
    expected = [tensor.numpy() for tensor in run(torch, copy.deepcopy(model).double(), torch.device("cpu"))]
    mine = copy.deepcopy(model).to(target.device)
    result = target.measure(lambda: run(torch, mine, target.device), expected, TOLERANCE)
    if result["status"] != "passed":
        return result

    def make(where: Target) -> Compute:
        own = copy.deepcopy(model).to(where.device)
        return lambda: run(torch, own, where.device)

    measured = target.measure_speed(make, amount, unit)
    if unit == "s of audio/s" and measured["speed"]["rate"] < 1.0:
        measured.update(status="slow", **target.explain("slower than sound"))
    return {**result, **measured}


def layers(torch: Any, **parts: Model) -> Model:  # noqa: ANN401 - the target's torch
    """Return a module of named parts."""
    return torch.nn.ModuleDict(parts)


def workload_llm(target: Target) -> Result:
    """Compare a transformer that generates tokens with itself on the CPU; return this with its rate in tokens/s."""
    torch, nn = target.torch, target.torch.nn
    torch.manual_seed(0)
    blocks = [
        layers(
            torch,
            before=nn.LayerNorm(WIDTH),
            attend=nn.Linear(WIDTH, 3 * WIDTH),
            out=nn.Linear(WIDTH, WIDTH),
            after=nn.LayerNorm(WIDTH),
            up=nn.Linear(WIDTH, 4 * WIDTH),
            down=nn.Linear(4 * WIDTH, WIDTH),
        )
        for _ in range(LAYERS)
    ]
    model = layers(
        torch,
        tokens=nn.Embedding(VOCABULARY, WIDTH),
        places=nn.Embedding(PROMPT + TOKENS, WIDTH),
        blocks=nn.ModuleList(blocks),
        head=nn.Linear(WIDTH, VOCABULARY),
    )
    return compare(target, model, run_llm, TOKENS, "tokens/s")


def run_llm(torch: Any, model: Model, device: Any) -> list[Tensor]:  # noqa: ANN401 - the target's torch
    """Generate 32 tokens after a fixed prompt, one by one with caches; return the logits of all steps as one tensor."""
    caches: list[Any] = [None] * LAYERS
    tokens, place, logits = torch.arange(PROMPT, device=device)[None] % VOCABULARY, 0, []
    with torch.no_grad():
        for _ in range(TOKENS):
            at = torch.arange(place, place + tokens.shape[1], device=device)
            hidden = model["tokens"](tokens) + model["places"](at)
            for number, block in enumerate(model["blocks"]):
                hidden, caches[number] = run_block(torch, block, hidden, caches[number])
            place += tokens.shape[1]
            logits.append(model["head"](hidden[:, -1]))
            tokens = logits[-1].argmax(-1, keepdim=True)
    return [torch.cat(logits)]


def run_block(torch: Any, block: Model, hidden: Tensor, cache: Any) -> tuple[Tensor, Any]:  # noqa: ANN401 - likewise
    """Pass hidden states through a block; return them and the keys and values so far (`cache`, None at first)."""
    split = block["attend"](block["before"](hidden)).unflatten(-1, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
    query, key, value = split[0], split[1], split[2]
    if cache is not None:
        key, value = torch.cat([cache[0], key], 2), torch.cat([cache[1], value], 2)
    attend = torch.nn.functional.scaled_dot_product_attention
    seen = attend(query, key, value, is_causal=cache is None).transpose(1, 2).flatten(2)
    hidden = hidden + block["out"](seen)
    return hidden + block["down"](torch.nn.functional.gelu(block["up"](block["after"](hidden)))), (key, value)


def workload_tts(target: Target) -> Result:
    """Compare a model that makes mel spectrograms of letters with itself on the CPU; return this with its rate."""
    torch, nn = target.torch, target.torch.nn
    torch.manual_seed(1)
    model = layers(
        torch,
        letters=nn.Embedding(64, WIDTH),
        encode=nn.Conv1d(WIDTH, WIDTH, 5, padding=2),
        norm=nn.LayerNorm(WIDTH),
        recur=nn.GRU(WIDTH, WIDTH, batch_first=True),
        mels=nn.Linear(WIDTH, MELS),
    )
    return compare(target, model, run_tts, LETTERS * FRAMES_PER_LETTER * SECONDS_PER_FRAME, "s of audio/s")


def run_tts(torch: Any, model: Model, device: Any) -> list[Tensor]:  # noqa: ANN401 - the target's torch
    """Return the mel frames of a fixed text of 40 letters, four frames for each, in a list."""
    with torch.no_grad():
        hidden = model["letters"](torch.arange(LETTERS, device=device)[None] % 64)
        hidden = model["norm"](torch.relu(model["encode"](hidden.transpose(1, 2))).transpose(1, 2))
        lengths = torch.full((LETTERS,), FRAMES_PER_LETTER, device=device)
        stretched = torch.repeat_interleave(hidden, lengths, dim=1)
        return [model["mels"](model["recur"](stretched)[0])]


def workload_vocoder(target: Target) -> Result:
    """Compare a model that makes sound of mel spectrograms with itself on the CPU; return this with its rate."""
    torch, nn = target.torch, target.torch.nn
    torch.manual_seed(2)
    widths, strides = (64, 32, 16, 8, 8), (8, 8, 2, 2)
    stages = [
        layers(
            torch,
            widen=nn.ConvTranspose1d(wide, narrow, 2 * stride, stride, padding=stride // 2),
            mix=nn.Conv1d(narrow, narrow, 3, dilation=3, padding=3),
        )
        for wide, narrow, stride in zip(widths, widths[1:], strides)  # noqa: B905 - strict= came with Python 3.10
    ]
    first, last = nn.Conv1d(MELS, widths[0], 7, padding=3), nn.Conv1d(widths[-1], 1, 7, padding=3)
    model = layers(torch, first=first, stages=nn.ModuleList(stages), last=last)
    return compare(target, model, run_vocoder, FRAMES * SECONDS_PER_FRAME, "s of audio/s")


def run_vocoder(torch: Any, model: Model, device: Any) -> list[Tensor]:  # noqa: ANN401 - the target's torch
    """Return the samples of sound for 24 fixed mel frames, in a list."""
    weight = model["first"].weight
    frames = torch.linspace(-1.0, 1.0, MELS * FRAMES, device=device, dtype=weight.dtype).view(1, MELS, FRAMES)
    with torch.no_grad():
        wave = model["first"](frames)
        for stage in model["stages"]:
            wave = snake(torch, stage["widen"](snake(torch, wave)))
            wave = wave + stage["mix"](wave)
        return [torch.tanh(model["last"](wave))]


def snake(torch: Any, wave: Tensor) -> Tensor:  # noqa: ANN401 - the target's torch
    """Bend a wave periodically: x + sin²(x)."""
    return wave + torch.sin(wave) ** 2


def workload_lora(target: Target) -> Result:
    """Compare the losses of a low-rank fine-tuning with those on the CPU; return this with its rate in samples/s."""
    torch, nn = target.torch, target.torch.nn
    torch.manual_seed(3)
    down, up = nn.Linear(WIDTH, RANK, bias=False), nn.Linear(RANK, WIDTH, bias=False)
    nn.init.zeros_(up.weight)
    model = layers(torch, frozen=nn.Linear(WIDTH, WIDTH), down=down, up=up, head=nn.Linear(WIDTH, 8))
    for part in ("frozen", "head"):
        model[part].requires_grad_(False)
    return compare(target, model, run_lora, BATCH * STEPS, "samples/s")


def run_lora(torch: Any, model: Model, device: Any) -> list[Tensor]:  # noqa: ANN401 - the target's torch
    """Train a copy's low-rank matrices for eight steps on one fixed batch; return the losses as one tensor."""
    model = copy.deepcopy(model)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=1e-2)
    dtype = weights[0].dtype
    inputs = torch.linspace(-1.0, 1.0, BATCH * WIDTH, device=device, dtype=dtype).view(BATCH, WIDTH).sin()
    goals, losses = torch.arange(BATCH, device=device) % 8, []
    for _ in range(STEPS):
        hidden = torch.relu(model["frozen"](inputs) + model["up"](model["down"](inputs)))
        loss = torch.nn.functional.cross_entropy(model["head"](hidden), goals)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [torch.stack(losses)]


PICTURE = (400, 600)  # points, down and across, as in the first notebook


def draw_picture(target: Target) -> Result:
    """Draw a Julia set on the device, send it as the fact "picture", and return its speed beside the CPU's.

    The fact is a PNG in base64, of every second point in each direction. On a GPU the second run counts, as the first
    may compile.
    """
    gpu = target.kind != "cpu"
    seconds, steps = [time_picture(target) for _ in range(2 if gpu else 1)][-1]
    target.require_device(steps)
    target.report_facts(picture=png_of(target.numpy, steps.cpu().numpy()[::2, ::2]))
    points = PICTURE[0] * PICTURE[1] / 1e6
    speed = {"rate": points / seconds, "unit": "million points/s"}
    if gpu:
        speed["cpu_rate"] = points / time_picture(target.make_cpu_target())[0]
    return {"status": "passed", "seconds": seconds, "speed": speed}


def time_picture(target: Target) -> tuple[float, Tensor]:
    """Return the seconds that a Julia set took, and how many of 100 steps each point stays near."""
    torch, device = target.torch, target.device
    started = time.perf_counter()
    down, across = (torch.linspace(-1, 1, PICTURE[0]), torch.linspace(-1.5, 1.5, PICTURE[1]))
    y, x = down.to(device)[:, None].repeat(1, PICTURE[1]), across.to(device)[None, :].repeat(PICTURE[0], 1)
    steps = torch.zeros_like(x)
    for _ in range(100):
        across2, down2 = x * x, y * y
        steps += (across2 + down2 < 4).float()  # noqa: PLR2004 - two squared: beyond it no point comes back
        x, y = across2 - down2 - 0.8, 2 * x * y + 0.156
    target.wait([steps])
    return time.perf_counter() - started, steps


def png_of(np: Module, steps: Array) -> str:
    """Return whole numbers from 0 to 100 as a PNG with a palette from night blue to pale yellow, in base64."""
    share = np.linspace(0, 1, 101) ** 0.5
    colours = np.stack([share**0.7, share**1.8, 0.25 + 0.55 * np.sin(2.6 * share)], axis=1)
    height, width = steps.shape
    rows = np.concatenate([np.zeros((height, 1)), steps], axis=1).astype("uint8").tobytes()

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, 3, 0, 0, 0))
    palette = chunk(b"PLTE", (255 * colours.clip(0, 1)).astype("uint8").tobytes())
    whole = head + palette + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + whole).decode()


CHECKS: Checks = {
    "picture": (draw_picture, ("device",)),
    "workload.llm": (workload_llm, ("copy",)),
    "workload.tts": (workload_tts, ("copy",)),
    "workload.vocoder": (workload_vocoder, ("copy",)),
    "workload.lora": (workload_lora, ("training",)),
}
