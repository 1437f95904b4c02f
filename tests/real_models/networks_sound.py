"""Networks that are exported: speech and music, small, with random weights."""

from __future__ import annotations

import math

import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional as f
from torch.nn.utils.parametrizations import weight_norm
from whole import Network, Picked, network, whole


def wave(*shape: int) -> Tensor:
    """Make tones with noise along the last axis, as loud as speech is."""
    time = torch.arange(shape[-1]) / 16000
    pitch = torch.rand(*shape[:-1], 1) * 200 + 90
    return 0.3 * torch.sin(2 * math.pi * pitch * time) + 0.02 * torch.randn(shape)


WHISPER = {
    "vocab_size": 200, "num_mel_bins": 16, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
    "max_source_positions": 50, "max_target_positions": 40, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 1, "attn_implementation": "eager",
}  # fmt: skip


@network()
def whisper_encoder() -> Network:
    """Give Whisper's encoder."""
    model = transformers.WhisperModel(transformers.WhisperConfig(**WHISPER)).encoder
    return Picked(model, ("input_features",), ("last_hidden_state",)), lambda: {
        "input_features": torch.randn(1, 16, 100)
    }


@network()
def whisper_decoder() -> Network:
    """Give Whisper's decoder."""
    model = transformers.WhisperModel(transformers.WhisperConfig(**WHISPER)).decoder
    names = ("input_ids", "attention_mask", "encoder_hidden_states")
    picked = Picked(model, names, ("last_hidden_state",), use_cache=False)
    return picked, lambda: {
        "input_ids": whole(200, 1, 9),
        "attention_mask": torch.ones(1, 9, dtype=torch.long),
        "encoder_hidden_states": torch.randn(1, 50, 32),
    }


@network()
def wav2vec2_ctc() -> Network:
    """Give wav2vec 2.0 with its head for CTC."""
    config = transformers.Wav2Vec2Config(
        vocab_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        conv_dim=(16, 16, 16), conv_stride=(5, 4, 4), conv_kernel=(10, 8, 4), num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4, attn_implementation="eager",
    )  # fmt: skip
    return Picked(transformers.Wav2Vec2ForCTC(config), ("input_values",), ("logits",)), lambda: {
        "input_values": wave(1, 4000) * 3
    }


@network()
def audio_spectrogram_transformer() -> Network:
    """Give the audio spectrogram transformer."""
    config = transformers.ASTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_length=64,
        num_mel_bins=32, attn_implementation="eager",
    )  # fmt: skip
    model = transformers.ASTForAudioClassification(config)
    return Picked(model, ("input_values",), ("logits",)), lambda: {"input_values": torch.randn(1, 64, 32)}


class Vocoder(nn.Module):
    """HiFi-GAN's generator: transposed convolutions, and residual blocks of several widths summed after each."""

    def __init__(self, bins: int = 40) -> None:
        super().__init__()
        self.before = weight_norm(nn.Conv1d(bins, 64, 7, padding=3))
        self.ups = nn.ModuleList(
            weight_norm(nn.ConvTranspose1d(64 >> at, 32 >> at, 8, 4, padding=2)) for at in range(2)
        )
        self.blocks = nn.ModuleList(
            nn.ModuleList(weight_norm(nn.Conv1d(32 >> at, 32 >> at, 3, padding=gap, dilation=gap)) for gap in (1, 3, 5))
            for at in range(2)
        )
        self.after = weight_norm(nn.Conv1d(16, 1, 7, padding=3))

    def forward(self, mel: Tensor) -> Tensor:
        """Take `[batch, bins, frames]`; give a wave."""
        x = self.before(mel)
        for up, block in zip(self.ups, self.blocks, strict=True):
            x = up(f.leaky_relu(x, 0.1))
            x = sum(layer(f.leaky_relu(x, 0.1)) + x for layer in block) / len(block)
        return torch.tanh(self.after(f.leaky_relu(x)))


@network(open={"mel": {2: "frames"}})
def hifi_gan() -> Network:
    """Give a vocoder."""
    return Vocoder(), lambda: {"mel": torch.randn(1, 40, 30) * 2 - 4}


class Coupling(nn.Module):
    """A flow's coupling: gated dilated convolutions that shift and scale one half by the other."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.before = nn.Conv1d(size // 2, 32, 1)
        self.gates = nn.ModuleList(nn.Conv1d(32, 64, 3, padding=2**at, dilation=2**at) for at in range(3))
        self.after = nn.Conv1d(32, size, 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Take and give `[batch, size, time]`."""
        one, other = x.chunk(2, 1)
        h = self.before(one) * mask
        for gate in self.gates:
            a, b = gate(h).chunk(2, 1)
            h = (h + torch.tanh(a) * torch.sigmoid(b)) * mask
        mean, scale = self.after(h).chunk(2, 1)
        return torch.cat([one, (other - mean) * torch.exp(-0.3 * torch.tanh(scale)) * mask], 1).flip(1)


class Speech(nn.Module):
    """A VITS-like voice: text encoder, durations, a path between them, a flow backwards, a vocoder."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(60, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.project, self.duration = nn.Conv1d(32, 48, 1), nn.Conv1d(32, 1, 3, padding=1)
        self.flow = nn.ModuleList(Coupling(24) for _number in range(3))
        self.vocoder = Vocoder(24)

    def forward(self, text: Tensor, noise: Tensor, scale: Tensor) -> Tensor:
        """Take ids `[1, letters]`, noise `[1, 24, frames]` and how much of it; give a wave."""
        h = self.encoder(self.table(text) * math.sqrt(32)).transpose(1, 2)
        mean, spread = self.project(h).chunk(2, 1)
        length = torch.ceil(torch.exp(self.duration(h)) * 2).clamp(1, 6)
        ends = length.cumsum(2).transpose(1, 2)
        frames = torch.arange(noise.shape[2])[None, None]
        path = ((frames < ends) & (frames >= ends - length.transpose(1, 2))).float()
        mask = (frames < ends[:, -1:]).float()
        z = (mean @ path + noise * torch.exp(0.3 * (spread @ path)) * scale) * mask
        for step in self.flow:
            z = step(z, mask)
        return self.vocoder(z * mask)


@network()
def vits() -> Network:
    """Give one that is drawn noise from outside, so that two runs agree."""
    return Speech(), lambda: {"text": whole(60, 1, 20), "noise": torch.randn(1, 24, 48), "scale": torch.tensor([0.667])}


class Mel(nn.Module):
    """The logarithm of a mel spectrogram, by a Fourier transform of windows, normalised over time."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(400))
        self.register_buffer("filters", torch.rand(40, 201) * (torch.rand(40, 201) > 0.8) * 0.02)

    def forward(self, sound: Tensor) -> Tensor:
        """Take `[batch, samples]`; give `[batch, 40, frames]`."""
        made = torch.stft(sound, 400, 160, window=self.window, center=False, return_complex=False, onesided=True)
        power = made.pow(2).sum(-1)
        mel = (self.filters @ power).clamp(min=1e-10).log10()
        mel = torch.maximum(mel, mel.amax((1, 2), keepdim=True) - 8)
        return (mel - mel.mean(2, keepdim=True)) / (mel.std(2, keepdim=True) + 1e-5)


class ViewedMel(Mel):
    """The same with the transform as a convolution, as exports have it that avoid complex numbers."""

    def __init__(self) -> None:
        super().__init__()
        turn = 2 * math.pi * torch.arange(201)[:, None] * torch.arange(400) / 400
        self.register_buffer("kernel", torch.cat([turn.cos(), turn.sin()])[:, None] * self.window)

    def forward(self, sound: Tensor) -> Tensor:
        """Take `[batch, samples]`; give `[batch, 40, frames]`."""
        power = f.conv1d(sound[:, None], self.kernel, stride=160).pow(2)
        mel = (self.filters @ (power[:, :201] + power[:, 201:])).clamp(min=1e-10).log10()
        mel = torch.maximum(mel, mel.amax((1, 2), keepdim=True) - 8)
        return (mel - mel.mean(2, keepdim=True)) / (mel.std(2, keepdim=True) + 1e-5)


@network()
def mel_stft() -> Network:
    """Give a spectrogram by STFT."""
    return Mel(), lambda: {"sound": wave(1, 8000)}


@network()
def mel_convolution() -> Network:
    """Give a spectrogram by convolution."""
    return ViewedMel(), lambda: {"sound": wave(1, 8000)}


class Listener(nn.Module):
    """A small recogniser for CTC: convolutions that halve the time twice, a GRU, a logarithm of softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.front = nn.Sequential(nn.Conv2d(1, 8, 3, 2), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.ReLU())
        self.layer, self.head = nn.GRU(144, 48, bidirectional=True, batch_first=True), nn.Linear(96, 30)

    def forward(self, mel: Tensor) -> Tensor:
        """Take `[batch, frames, 40]`; give logarithms of probabilities."""
        x = self.front(mel[:, None]).transpose(1, 2).flatten(2)
        return self.head(self.layer(x)[0]).log_softmax(-1)


@network(open={"mel": {1: "frames"}})
def ctc() -> Network:
    """Give a recogniser for CTC."""
    return Listener(), lambda: {"mel": torch.randn(1, 60, 40)}


class Transducer(nn.Module):
    """One step of an RNN-T: encoder frames, the predictor's LSTM over what was said, the joint of all pairs."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.table = nn.LSTM(40, 48, batch_first=True), nn.Embedding(30, 32)
        self.predictor, self.joint = nn.LSTM(32, 48, batch_first=True), nn.Linear(48, 30)

    def forward(self, mel: Tensor, said: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
        """Take `[batch, frames, 40]`, ids `[batch, letters]` and the state; give the joint and the state."""
        heard = self.encoder(mel)[0]
        told, (h, c) = self.predictor(self.table(said), (h, c))
        return self.joint(torch.tanh(heard[:, :, None] + told[:, None])).log_softmax(-1), h, c


@network()
def rnn_t() -> Network:
    """Give a transducer."""
    state = lambda: torch.randn(1, 1, 48)  # noqa: E731 - drawn anew for each input
    return Transducer(), lambda: {"mel": torch.randn(1, 25, 40), "said": whole(30, 1, 6), "h": state(), "c": state()}


class Separator(nn.Module):
    """Conv-TasNet: a learned transform, masks by dilated depthwise blocks with a norm over all, and back."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Conv1d(1, 32, 16, 8, bias=False), nn.ConvTranspose1d(32, 1, 16, 8, bias=False)
        self.norm, self.masks = nn.GroupNorm(1, 32, eps=1e-8), nn.Conv1d(32, 64, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(32, 48, 1), nn.PReLU(), nn.GroupNorm(1, 48, eps=1e-8),
                nn.Conv1d(48, 48, 3, padding=2**at, dilation=2**at, groups=48), nn.PReLU(),
                nn.GroupNorm(1, 48, eps=1e-8), nn.Conv1d(48, 32, 1),
            )
            for at in range(4)
        )  # fmt: skip

    def forward(self, mixed: Tensor) -> Tensor:
        """Take `[batch, samples]`; give two voices."""
        seen = torch.relu(self.encode(mixed[:, None]))
        x = self.norm(seen)
        for block in self.blocks:
            x = x + block(x)
        masks = torch.sigmoid(self.masks(x)).view(-1, 2, 32, x.shape[2])
        return torch.cat([self.decode(masks[:, at] * seen) for at in range(2)], 1)


@network()
def conv_tasnet() -> Network:
    """Give a separator of voices."""
    return Separator(), lambda: {"mixed": wave(1, 4000)}


class Speaker(nn.Module):
    """A speaker's embedding: dilated convolutions, mean and spread weighed by attention, unit length."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(40, 64, 5), nn.ReLU(), nn.BatchNorm1d(64), nn.Conv1d(64, 64, 3, dilation=2), nn.ReLU()
        )
        self.weigh, self.head = nn.Conv1d(64, 1, 1), nn.Linear(128, 32)

    def forward(self, mel: Tensor) -> Tensor:
        """Take `[batch, 40, frames]`; give `[batch, 32]`."""
        x = self.layers(mel)
        part = self.weigh(x).softmax(2)
        mean = (part * x).sum(2)
        spread = ((part * x * x).sum(2) - mean * mean).clamp(min=1e-9).sqrt()
        return f.normalize(self.head(torch.cat([mean, spread], 1)), dim=1)


@network()
def speaker() -> Network:
    """Give an embedding of speakers."""
    return Speaker(), lambda: {"mel": torch.randn(2, 40, 60)}
