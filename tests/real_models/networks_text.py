"""Networks that are exported: language, small, with random weights; most of them classes of transformers."""

from __future__ import annotations

import torch
import transformers
from torch import Tensor, nn
from whole import Network, Picked, network, whole

WORDS, LENGTH = 300, 12
SMALL = {
    "vocab_size": WORDS, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96,
    "attn_implementation": "eager",
}  # fmt: skip
OPEN = {"input_ids": {1: "length"}, "attention_mask": {1: "length"}}


def read() -> dict[str, Tensor]:
    """Draw a text, and a mask that leaves out its end."""
    mask = torch.ones(2, LENGTH, dtype=torch.long)
    mask[1, 9:] = 0
    return {"input_ids": whole(WORDS, 2, LENGTH), "attention_mask": mask}


def encoder(config: transformers.PreTrainedConfig, *outputs: str) -> Network:
    """Make an encoder of text that takes ids and a mask."""
    model = transformers.AutoModel.from_config(config)
    return Picked(model, ("input_ids", "attention_mask"), outputs or ("last_hidden_state",)), read


@network(open=OPEN)
def bert() -> Network:
    """Give BERT with its pooler."""
    return encoder(transformers.BertConfig(**SMALL), "last_hidden_state", "pooler_output")


@network()
def distilbert() -> Network:
    """Give DistilBERT."""
    config = transformers.DistilBertConfig(
        vocab_size=WORDS, dim=48, n_layers=2, n_heads=4, hidden_dim=96, attn_implementation="eager"
    )
    return encoder(config)


@network()
def albert() -> Network:
    """Give ALBERT, whose layers share weights."""
    return encoder(transformers.AlbertConfig(**SMALL, embedding_size=24))


@network()
def deberta() -> Network:
    """Give DeBERTa with relative positions."""
    config = transformers.DebertaV2Config(
        **SMALL, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8, max_relative_positions=16
    )
    return encoder(config)


@network()
def mpnet() -> Network:
    """Give MPNet, with a bias for relative positions."""
    return encoder(transformers.MPNetConfig(**SMALL))


@network()
def sentence() -> Network:
    """Give an embedding of sentences: the mean over the mask, unit length."""

    class Sentence(nn.Module):
        """An encoder and the mean of what it sees."""

        def __init__(self) -> None:
            super().__init__()
            self.model = transformers.AutoModel.from_config(transformers.BertConfig(**SMALL))

        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
            """Take ids and mask; give `[batch, 48]`."""
            seen = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            mask = attention_mask[..., None].to(seen.dtype)
            mean = (seen * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
            return nn.functional.normalize(mean, p=2, dim=1)

    return Sentence(), read


@network()
def t5_encoder() -> Network:
    """Give T5's encoder."""
    config = transformers.T5Config(vocab_size=WORDS, d_model=48, d_kv=12, d_ff=96, num_layers=2, num_heads=4)
    return Picked(transformers.T5EncoderModel(config), ("input_ids", "attention_mask"), ("last_hidden_state",)), read


@network()
def gpt2() -> Network:
    """Give GPT-2 without a cache."""
    config = transformers.GPT2Config(
        vocab_size=WORDS, n_positions=64, n_embd=48, n_layer=2, n_head=4, attn_implementation="eager"
    )
    model = transformers.GPT2LMHeadModel(config)
    return Picked(model, ("input_ids", "attention_mask"), ("logits",), use_cache=False), read


@network()
def opt() -> Network:
    """Give OPT, whose positions are counted from the mask."""
    config = transformers.OPTConfig(
        vocab_size=WORDS, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, ffn_dim=96,
        max_position_embeddings=64, word_embed_proj_dim=48, attn_implementation="eager",
    )  # fmt: skip
    model = transformers.OPTForCausalLM(config)
    return Picked(model, ("input_ids", "attention_mask"), ("logits",), use_cache=False), read


def placed() -> dict[str, Tensor]:
    """Draw a text that stands anywhere in a long one."""
    first = int(torch.randint(0, 30000, ()))
    ids = whole(WORDS, 1, LENGTH)
    places = torch.arange(first, first + LENGTH)[None]
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "position_ids": places}


def decoder(config: transformers.PreTrainedConfig) -> Network:
    """Make a decoder that is told the positions."""
    model = transformers.AutoModelForCausalLM.from_config(config)
    return Picked(model, ("input_ids", "attention_mask", "position_ids"), ("logits",), use_cache=False), placed


@network()
def llama() -> Network:
    """Give Llama: rotary positions, grouped heads, RMS norms."""
    return decoder(transformers.LlamaConfig(**SMALL, num_key_value_heads=2, max_position_embeddings=40000))


@network()
def qwen2() -> Network:
    """Give Qwen 2."""
    return decoder(transformers.Qwen2Config(**SMALL, num_key_value_heads=2, max_position_embeddings=40000))


@network()
def gemma() -> Network:
    """Give Gemma, with its scaled embeddings and offset norms."""
    return decoder(transformers.GemmaConfig(**SMALL, num_key_value_heads=1, head_dim=12, max_position_embeddings=40000))


class Rotary(nn.Module):
    """Rotary positions, written out: one block, its keys and values handed in and out."""

    def __init__(self, size: int = 48, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.each = heads, size // heads
        self.table, self.norm = nn.Embedding(WORDS, size), nn.Parameter(torch.rand(size) + 0.5)
        self.qkv, self.out, self.logits = nn.Linear(size, 3 * size), nn.Linear(size, size), nn.Linear(size, WORDS)
        self.register_buffer("turns", 10000.0 ** (-torch.arange(0, self.each, 2) / self.each))

    def turned(self, x: Tensor, places: Tensor) -> Tensor:
        """Turn pairs of numbers by their place."""
        angle = (places[..., None].float() * self.turns)[:, None]
        one, other = x.chunk(2, -1)
        return torch.cat([one * angle.cos() - other * angle.sin(), other * angle.cos() + one * angle.sin()], -1)

    def forward(self, ids: Tensor, places: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Take new ids and their places, and `[1, heads, past, each]` twice; give logits and the longer cache."""
        x = self.table(ids)
        scaled = self.norm * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        split = (t.view(1, -1, self.heads, self.each).transpose(1, 2) for t in self.qkv(scaled).chunk(3, -1))
        q, k, v = split
        k, v = torch.cat([keys, self.turned(k, places)], 2), torch.cat([values, v], 2)
        score = self.turned(q, places) @ k.transpose(2, 3) * self.each**-0.5
        ahead = torch.arange(k.shape[2]) > torch.arange(q.shape[2])[:, None] + keys.shape[2]
        seen = score.masked_fill(ahead, torch.finfo(score.dtype).min).softmax(-1) @ v
        return self.logits(x + self.out(seen.transpose(1, 2).flatten(2))), k, v


@network(open={"keys": {2: "past"}, "values": {2: "past"}})
def gpt_cache() -> Network:
    """Give a decoder with a cache and rotary positions."""

    def inputs() -> dict[str, Tensor]:
        first = int(torch.randint(7, 30000, ()))
        cache = lambda: torch.randn(1, 4, 7, 12)  # noqa: E731 - drawn anew for each input
        return {
            "ids": whole(WORDS, 1, 3), "places": torch.arange(first, first + 3)[None],
            "keys": cache(), "values": cache(),
        }  # fmt: skip

    return Rotary(), inputs


@network()
def tagger() -> Network:
    """Give a tagger of characters: convolutions, an LSTM both ways, the best path's scores."""

    class Tagger(nn.Module):
        """Scores of tags, and the best score of a path to each letter (Viterbi, forward)."""

        def __init__(self) -> None:
            super().__init__()
            self.table, self.window = nn.Embedding(90, 24), nn.Conv1d(24, 24, 5, padding=2)
            self.layer, self.head = nn.LSTM(24, 24, bidirectional=True, batch_first=True), nn.Linear(48, 5)
            self.moves = nn.Parameter(torch.randn(5, 5))

        def forward(self, letters: Tensor) -> tuple[Tensor, Tensor]:
            """Take ids `[batch, 16]`."""
            x = torch.relu(self.window(self.table(letters).transpose(1, 2))).transpose(1, 2)
            scores = self.head(self.layer(x)[0])
            best = scores[:, 0]
            for at in range(1, 16):
                best = (best[:, :, None] + self.moves).amax(1) + scores[:, at]
            return scores, best.argmax(-1)

    return Tagger(), lambda: {"letters": whole(90, 2, 16)}
