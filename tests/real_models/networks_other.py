"""Networks that are exported: recurrent, tabular, graphs, sound; written out here, small, with random weights."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as f
from whole import Network, network, whole


class Recurrent(nn.Module):
    """A recurrent layer in both directions with a head; its states go in and out."""

    def __init__(self, kind: type[nn.RNNBase], states: int) -> None:
        super().__init__()
        self.layer = kind(24, 32, num_layers=2, bidirectional=True, batch_first=True)
        self.head, self.states = nn.Linear(64, 10), states

    def forward(self, x: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        """Take `[batch, time, 24]` and the states; give logits and the states."""
        made, left = self.layer(x, state[0] if self.states == 1 else state)
        return (self.head(made), left) if self.states == 1 else (self.head(made), *left)


@network(open={"x": {1: "time"}})
def lstm() -> Network:
    """Give an LSTM."""
    state = lambda: torch.randn(4, 2, 32)  # noqa: E731 - drawn anew for each input
    return Recurrent(nn.LSTM, 2), lambda: {"x": torch.randn(2, 20, 24), "h": state(), "c": state()}


@network(open={"x": {1: "time"}})
def gru() -> Network:
    """Give a GRU."""
    return Recurrent(nn.GRU, 1), lambda: {"x": torch.randn(2, 20, 24), "h": torch.randn(4, 2, 32)}


class Steps(nn.Module):
    """A GRU cell in a loop of its own, as old code has it."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(16, 24), nn.Linear(24, 4)

    def forward(self, x: Tensor) -> Tensor:
        """Take `[time, batch, 16]`."""
        state = torch.zeros(x.shape[1], 24)
        for at in range(12):
            state = self.cell(x[at], state)
        return self.head(state)


@network()
def gru_steps() -> Network:
    """Give a GRU cell in a loop."""
    return Steps(), lambda: {"x": torch.randn(12, 2, 16)}


class Tabular(nn.Module):
    """Columns of categories and of numbers, normalised, through a few layers."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, 8) for size in (12, 7, 300))
        self.norm = nn.BatchNorm1d(10)
        self.layers = nn.Sequential(nn.Linear(34, 64), nn.ReLU(), nn.BatchNorm1d(64), nn.Linear(64, 32), nn.GELU())
        self.head = nn.Linear(32, 1)

    def forward(self, kinds: Tensor, values: Tensor) -> Tensor:
        """Take `[batch, 3]` and `[batch, 10]`; give a probability."""
        seen = [table(kinds[:, at]) for at, table in enumerate(self.tables)]
        return torch.sigmoid(self.head(self.layers(torch.cat([*seen, self.norm(values)], 1)))).squeeze(-1)


@network(open={"kinds": {0: "batch"}, "values": {0: "batch"}})
def tabular() -> Network:
    """Give a network for tables."""
    return Tabular(), lambda: {"kinds": whole(7, 16, 3), "values": torch.randn(16, 10) * 3}


class Prices(nn.Module):
    """A regression on columns as they stand: years, amounts and shares, scaled inside."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([1990.0, 45000.0, 0.4, 120.0]))
        self.register_buffer("spread", torch.tensor([15.0, 22000.0, 0.2, 60.0]))
        self.layers = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, columns: Tensor) -> Tensor:
        """Take `[batch, 4]`; give a price in thousands."""
        return self.layers((columns - self.mean) / self.spread) * 80 + 200


@network(open={"columns": {0: "batch"}})
def prices() -> Network:
    """Give a regression on raw columns."""
    scale, mean = torch.tensor([15.0, 22000.0, 0.2, 60.0]), torch.tensor([1990.0, 45000.0, 0.4, 120.0])
    return Prices(), lambda: {"columns": torch.randn(16, 4) * scale + mean}


class Graph(nn.Module):
    """Messages along edges, summed where they arrive, divided by how many there are."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.message, self.update = nn.Linear(9, 32), nn.Linear(64, 32), nn.Linear(64, 32)
        self.head = nn.Linear(32, 3)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """Take `[nodes, 9]` and `[2, edges]`; give `[nodes, 3]`."""
        x = torch.relu(self.first(x))
        for _layer in range(2):
            sent = torch.relu(self.message(torch.cat([x[edges[0]], x[edges[1]]], 1)))
            summed = torch.zeros_like(x).scatter_add(0, edges[1][:, None].expand_as(sent), sent)
            count = torch.zeros_like(x[:, :1]).scatter_add(0, edges[1][:, None], torch.ones_like(sent[:, :1]))
            x = torch.relu(self.update(torch.cat([x, summed / count.clamp(min=1)], 1)))
        return self.head(x)


@network()
def gnn_scatter() -> Network:
    """Give a graph network that sums by scattering."""
    return Graph(), lambda: {"x": torch.randn(30, 9), "edges": whole(30, 2, 90)}


class Attention(nn.Module):
    """Attention over a node's edges: the softmax by hand, from the largest and the sum of exponentials."""

    def __init__(self) -> None:
        super().__init__()
        self.value, self.weigh = nn.Linear(16, 32), nn.Linear(64, 1)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """Take `[nodes, 16]` and `[2, edges]`; give `[nodes, 32]`."""
        x = self.value(x)
        score = f.leaky_relu(self.weigh(torch.cat([x[edges[0]], x[edges[1]]], 1)), 0.2)
        score = (score - score.max()).exp()
        at = edges[1][:, None]
        total = torch.zeros_like(x[:, :1]).scatter_add(0, at, score)
        part = score / (total[edges[1]] + 1e-12)
        return torch.zeros_like(x).scatter_add(0, at.expand(-1, 32), part * x[edges[0]])


@network()
def gat_scatter() -> Network:
    """Give attention over a graph."""
    return Attention(), lambda: {"x": torch.randn(30, 16), "edges": whole(30, 2, 120)}


class Recommender(nn.Module):
    """Bags of categories and a bottom and top of layers, with the products of all pairs between them."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.Embedding(size, 16) for size in (1000, 50, 2000))
        self.bottom = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(22, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, numbers: Tensor, kinds: Tensor) -> Tensor:
        """Take `[batch, 13]` and `[batch, 3, 4]`; give a probability."""
        parts = [self.bottom(numbers), *(bag(kinds[:, at]).sum(1) for at, bag in enumerate(self.bags))]
        stacked = torch.stack(parts, 1)
        pairs = torch.triu_indices(4, 4, 1)
        crossed = (stacked @ stacked.transpose(1, 2))[:, pairs[0], pairs[1]]
        return torch.sigmoid(self.top(torch.cat([parts[0], crossed], 1)))


@network()
def dlrm() -> Network:
    """Give a recommender."""
    return Recommender(), lambda: {"numbers": torch.rand(8, 13) * 4, "kinds": whole(50, 8, 3, 4)}


class Radiance(nn.Module):
    """A radiance field: points seen through sines of growing frequency, samples summed along each ray."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(63, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
        self.register_buffer("scales", 2.0 ** torch.arange(10))

    def forward(self, points: Tensor, depths: Tensor) -> tuple[Tensor, Tensor]:
        """Take `[rays, samples, 3]` and `[rays, samples]`; give colour and depth of each ray."""
        turned = (points[..., None] * self.scales * math.pi).flatten(-2)
        made = self.layers(torch.cat([points, turned.sin(), turned.cos()], -1))
        colour, density = torch.sigmoid(made[..., :3]), torch.relu(made[..., 3])
        step = torch.cat([depths[:, 1:] - depths[:, :-1], torch.full_like(depths[:, :1], 1e3)], 1)
        alpha = 1 - torch.exp(-density * step)
        clear = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[:, :-1]
        weight = alpha * clear
        return (weight[..., None] * colour).sum(1), (weight * depths).sum(1)


@network()
def nerf() -> Network:
    """Give a radiance field."""
    depths = torch.linspace(2, 6, 24).expand(32, 24).contiguous()
    return Radiance(), lambda: {"points": torch.rand(32, 24, 3) * 2 - 1, "depths": depths}


class Experts(nn.Module):
    """A layer of experts of which a router takes the two best for each token."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(32, 6)
        self.up, self.down = nn.Parameter(torch.randn(6, 32, 64) / 6), nn.Parameter(torch.randn(6, 64, 32) / 8)
        self.norm = nn.LayerNorm(32)

    def forward(self, x: Tensor) -> Tensor:
        """Take and give `[tokens, 32]`."""
        weight, chosen = self.router(self.norm(x)).softmax(-1).topk(2, -1)
        gates = torch.zeros(x.shape[0], 6).scatter(1, chosen, weight / weight.sum(-1, keepdim=True))
        each = torch.einsum("edh,te,td->teh", self.up, torch.ones_like(gates), self.norm(x))
        return x + torch.einsum("teh,ehd,te->td", f.silu(each), self.down, gates)


@network()
def experts() -> Network:
    """Give a mixture of experts."""
    return Experts(), lambda: {"x": torch.randn(24, 32)}


@network()
def transformer() -> Network:
    """Give torch's own encoder and decoder."""
    model = nn.Transformer(32, 4, 2, 2, 64, batch_first=True)
    return model, lambda: {"source": torch.randn(2, 14, 32), "target": torch.randn(2, 9, 32)}


class Points(nn.Module):
    """A cloud of points: each by itself, then the largest of all; distances between them beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.each = nn.Sequential(nn.Conv1d(3, 32, 1), nn.BatchNorm1d(32), nn.ReLU(), nn.Conv1d(32, 64, 1))
        self.head = nn.Linear(72, 5)

    def forward(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Take `[batch, 3, points]`; give logits, and each point's three neighbours."""
        apart = (points[..., :, None] - points[..., None, :]).pow(2).sum(1)
        near = apart.topk(9, largest=False)
        seen = torch.cat([self.each(points).amax(2), near.values[..., 1:].sqrt().mean(1)], 1)
        return self.head(seen), near.indices[..., 1:4]


@network()
def points() -> Network:
    """Give a network for clouds of points."""
    return Points(), lambda: {"points": torch.rand(2, 3, 64)}


class Policy(nn.Module):
    """A robot's policy: what it sees normalised by running figures, the action squashed and scaled."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.randn(17) * 5)
        self.register_buffer("var", torch.rand(17) * 40 + 1e-3)
        self.layers = nn.Sequential(nn.Linear(17, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 6))

    def forward(self, seen: Tensor) -> Tensor:
        """Take `[batch, 17]`; give `[batch, 6]`."""
        return torch.tanh(self.layers(((seen - self.mean) / torch.sqrt(self.var + 1e-8)).clamp(-10, 10))) * 2


@network(open={"seen": {0: "batch"}})
def policy() -> Network:
    """Give a policy."""
    return Policy(), lambda: {"seen": torch.randn(4, 17) * 6}


class Series(nn.Module):
    """Dilated causal convolutions over series that are scaled by their own mean and spread."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(4 if not at else 24, 24, 3, dilation=2**at) for at in range(4))
        self.head = nn.Linear(24, 4)

    def forward(self, series: Tensor) -> Tensor:
        """Take `[batch, 4, time]`; give the next values."""
        mean, spread = series.mean(2, keepdim=True), series.std(2, keepdim=True) + 1e-5
        x = (series - mean) / spread
        for at, layer in enumerate(self.layers):
            made = torch.relu(layer(f.pad(x, (2 * 2**at, 0))))
            x = made + x if at else made
        return self.head(x[..., -1]) * spread[..., 0] + mean[..., 0]


@network()
def series() -> Network:
    """Give a forecaster."""
    return Series(), lambda: {"series": torch.randn(3, 4, 96).cumsum(2) + 100}
