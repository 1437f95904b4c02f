"""Networks that are exported: images, small, with random weights; most are classes of torchvision and transformers."""

from __future__ import annotations

import diffusers
import torch
import transformers
from classical import torchvision
from torch import Tensor, nn
from torch.nn import functional as f
from whole import Network, Picked, network, whole

BATCH = {"image": {0: "batch"}}
ATTENTION = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "attn_implementation": "eager"}


def images(size: int = 64) -> dict[str, Tensor]:
    """Draw images, normalised as photographs are."""
    smooth = f.interpolate(torch.rand(2, 3, 8, 8), size=(size, size), mode="bilinear")
    return {"image": (smooth + 0.1 * torch.rand(2, 3, size, size) - 0.45) / 0.225}


def classifier(name: str, **options: object) -> Network:
    """Make one of torchvision's models."""
    return getattr(torchvision.models, name)(weights=None, **options), images


def seen(model: nn.Module, *outputs: str, size: int = 32) -> Network:
    """Make one of transformers' models that takes `pixel_values`."""
    return Picked(model, ("pixel_values",), outputs), lambda: {"pixel_values": images(size)["image"]}


@network(open=BATCH)
def resnet() -> Network:
    """Give ResNet-18."""
    return classifier("resnet18")


@network()
def mobilenet_v2() -> Network:
    """Give MobileNet V2, with clipped activations."""
    return classifier("mobilenet_v2")


@network(open=BATCH)
def mobilenet_v3() -> Network:
    """Give the small MobileNet V3."""
    return classifier("mobilenet_v3_small")


@network()
def efficientnet() -> Network:
    """Give EfficientNet B0."""
    return classifier("efficientnet_b0")


@network()
def squeezenet() -> Network:
    """Give SqueezeNet."""
    return classifier("squeezenet1_1")


@network()
def shufflenet() -> Network:
    """Give ShuffleNet V2."""
    return classifier("shufflenet_v2_x0_5")


@network()
def densenet() -> Network:
    """Give a small DenseNet."""
    return torchvision.models.DenseNet(growth_rate=8, block_config=(2, 4, 4, 2), num_init_features=16), images


@network()
def convnext() -> Network:
    """Give a small ConvNeXt."""
    setting = torchvision.models.convnext.CNBlockConfig
    blocks = [setting(24, 48, 1), setting(48, 96, 2), setting(96, None, 1)]
    return torchvision.models.ConvNeXt(blocks, num_classes=10, layer_scale=0.5), images


@network()
def segmentation() -> Network:
    """Give LR-ASPP on MobileNet V3."""
    model = torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None)
    return Picked(model, ("input",), ("out",)), images


@network()
def deeplab() -> Network:
    """Give DeepLab V3 on MobileNet V3."""
    model = torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None)
    return Picked(model, ("x",), ("out",)), images


@network()
def vit() -> Network:
    """Give ViT."""
    config = transformers.ViTConfig(hidden_size=32, image_size=32, patch_size=8, **ATTENTION)
    return seen(transformers.ViTModel(config), "last_hidden_state", "pooler_output")


@network()
def swin() -> Network:
    """Give Swin: shifted windows, relative positions."""
    config = transformers.SwinConfig(
        image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4,
        attn_implementation="eager",
    )  # fmt: skip
    return seen(transformers.SwinModel(config), "last_hidden_state")


@network()
def dinov2() -> Network:
    """Give DINOv2."""
    config = transformers.Dinov2Config(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=28, patch_size=7,
        attn_implementation="eager",
    )  # fmt: skip
    return seen(transformers.Dinov2Model(config), "last_hidden_state", size=28)


@network()
def segformer() -> Network:
    """Give SegFormer."""
    config = transformers.SegformerConfig(
        depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=32
    )
    return seen(transformers.SegformerForSemanticSegmentation(config), "logits", size=64)


@network()
def mobilevit() -> Network:
    """Give MobileViT."""
    config = transformers.MobileViTConfig(
        image_size=64, hidden_sizes=[24, 32, 40], neck_hidden_sizes=[8, 8, 16, 24, 32, 40, 48], num_attention_heads=2
    )
    return seen(transformers.MobileViTModel(config), "last_hidden_state", size=64)


@network()
def detr() -> Network:
    """Give DETR on a small ResNet."""
    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], layer_type="basic", out_features=["stage4"]
    )
    config = transformers.DetrConfig(
        backbone_config=backbone, d_model=32,
        encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
        decoder_ffn_dim=64, num_queries=12, attn_implementation="eager",
    )  # fmt: skip
    return seen(transformers.DetrForObjectDetection(config), "logits", "pred_boxes", size=64)


@network()
def yolos() -> Network:
    """Give YOLOS."""
    config = transformers.YolosConfig(
        hidden_size=32, image_size=[32, 32], patch_size=8, num_detection_tokens=9, use_mid_position_embeddings=False,
        **ATTENTION,
    )  # fmt: skip
    return seen(transformers.YolosForObjectDetection(config), "logits", "pred_boxes")


@network()
def clip() -> Network:
    """Give CLIP: both towers and their products."""
    text = {"vocab_size": 200, "hidden_size": 32, "max_position_embeddings": 24, "eos_token_id": 199, **ATTENTION}
    vision = {"hidden_size": 32, "image_size": 32, "patch_size": 8, **ATTENTION}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=24)
    config._attn_implementation = "eager"
    names = ("input_ids", "pixel_values", "attention_mask")
    model = Picked(transformers.CLIPModel(config), names, ("logits_per_image", "text_embeds", "image_embeds"))

    def inputs() -> dict[str, Tensor]:
        ids = whole(198, 3, 10)
        ids[:, -1] = 199
        return {"input_ids": ids, "pixel_values": images(32)["image"], "attention_mask": torch.ones_like(ids)}

    return model, inputs


@network()
def unet_diffusion() -> Network:
    """Give a diffusion U-Net that is told the time and a text."""
    model = diffusers.UNet2DConditionModel(
        sample_size=16, in_channels=4, out_channels=4, block_out_channels=(16, 32), layers_per_block=1,
        norm_num_groups=8, cross_attention_dim=24, attention_head_dim=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )  # fmt: skip
    names = ("sample", "timestep", "encoder_hidden_states")
    return Picked(model, names, ("sample",)), lambda: {
        "sample": torch.randn(1, 4, 16, 16),
        "timestep": torch.randint(1, 1000, (1,)),
        "encoder_hidden_states": torch.randn(1, 8, 24),
    }


def coder() -> diffusers.AutoencoderKL:
    """Make a small VAE."""
    return diffusers.AutoencoderKL(
        block_out_channels=(8, 16), norm_num_groups=4, latent_channels=4,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip


@network()
def vae_decoder() -> Network:
    """Give the VAE's decoder."""

    class Decoder(nn.Module):
        """The decoder alone, as diffusion pipelines export it."""

        def __init__(self) -> None:
            super().__init__()
            self.model = coder()

        def forward(self, latent: Tensor) -> Tensor:
            """Take latents; give an image."""
            return self.model.decode(latent / 0.18215).sample

    return Decoder(), lambda: {"latent": torch.randn(1, 4, 8, 8)}


@network()
def vae_encoder() -> Network:
    """Give the VAE's encoder."""

    class Encoder(nn.Module):
        """The encoder alone: mean and spread of the latents."""

        def __init__(self) -> None:
            super().__init__()
            self.model = coder()

        def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
            """Take an image; give mean and spread."""
            found = self.model.encode(image).latent_dist
            return found.mean, found.std

    return Encoder(), lambda: images(32)


class UNet(nn.Module):
    """A U-Net for masks, with skips and bilinear upsampling."""

    def __init__(self) -> None:
        super().__init__()
        block = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())  # noqa: E731 - a word for it
        self.down = nn.ModuleList([block(3, 16), block(16, 32)])
        self.deep = block(32, 64)
        self.up = nn.ModuleList([block(96, 32), block(48, 16)])
        self.head = nn.Conv2d(16, 1, 1)

    def forward(self, image: Tensor) -> Tensor:
        """Take an image; give a mask of as many pixels."""
        kept = []
        for step in self.down:
            image = step(image)
            kept.append(image)
            image = f.max_pool2d(image, 2)
        image = self.deep(image)
        for step, skip in zip(self.up, reversed(kept), strict=True):
            image = step(torch.cat([f.interpolate(image, scale_factor=2, mode="bilinear"), skip], 1))
        return torch.sigmoid(self.head(image))


@network(open=BATCH)
def unet() -> Network:
    """Give a U-Net."""
    return UNet(), images


@network()
def autoencoder() -> Network:
    """Give a convolutional autoencoder, with how far each image is from what it makes of it."""

    class Autoencoder(nn.Module):
        """Down, a narrow layer, up again; the error is what tells an anomaly."""

        def __init__(self) -> None:
            super().__init__()
            self.down = nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.ELU(), nn.Flatten(), nn.Linear(2048, 24))
            self.up = nn.Sequential(nn.Linear(24, 2048), nn.ELU(), nn.Unflatten(1, (8, 16, 16)))
            self.last = nn.ConvTranspose2d(8, 3, 4, 4)

        def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
            """Take an image; give it again and the error."""
            made = self.last(self.up(self.down(image)))
            return made, (made - image).pow(2).mean((1, 2, 3))

    return Autoencoder(), images


@network()
def style() -> Network:
    """Give a style transfer network: instance norms, reflections at the border, pixel values up to 255."""

    class Style(nn.Module):
        """As the well-known fast style networks are built."""

        def __init__(self) -> None:
            super().__init__()
            step = lambda a, b, k, s: [  # noqa: E731 - a word for it
                nn.ReflectionPad2d(k // 2), nn.Conv2d(a, b, k, s), nn.InstanceNorm2d(b, affine=True), nn.ReLU()
            ]  # fmt: skip
            self.front = nn.Sequential(*step(3, 16, 9, 1), *step(16, 32, 3, 2))
            self.back = nn.Sequential(nn.Upsample(scale_factor=2), *step(32, 16, 3, 1), nn.Conv2d(16, 3, 9, padding=4))

        def forward(self, image: Tensor) -> Tensor:
            """Take and give pixels from 0 to 255."""
            return (self.back(self.front(image)) * 60 + 128).clamp(0, 255)

    return Style(), lambda: {"image": torch.rand(1, 3, 64, 64) * 255}


@network()
def super_resolution() -> Network:
    """Give ESPCN: sub-pixel convolution, added to a bicubic enlargement."""

    class Larger(nn.Module):
        """Three convolutions and a shuffle of pixels."""

        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Conv2d(3, 24, 5, padding=2), nn.Tanh(), nn.Conv2d(24, 27, 3, padding=1))

        def forward(self, image: Tensor) -> Tensor:
            """Take an image; give one of three times the size."""
            return f.pixel_shuffle(self.layers(image), 3) + f.interpolate(image, scale_factor=3, mode="bicubic")

    return Larger(), lambda: images(32)


@network()
def warp() -> Network:
    """Give a spatial transformer: a network tells how the image is turned before it is looked at."""

    class Warp(nn.Module):
        """An affine grid that is sampled."""

        def __init__(self) -> None:
            super().__init__()
            self.look = nn.Sequential(nn.Conv2d(3, 8, 8, 4, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten())
            self.turn, self.head = nn.Linear(128, 6), nn.Conv2d(3, 4, 3)

        def forward(self, image: Tensor) -> Tensor:
            """Take an image; give features of the turned one."""
            turn = self.turn(self.look(image)).view(-1, 2, 3) * 0.2 + torch.eye(2, 3)
            grid = f.affine_grid(turn, [2, 3, 64, 64], align_corners=False)
            return self.head(f.grid_sample(image, grid, align_corners=False))

    return Warp(), images


@network()
def detector() -> Network:
    """Give a detector as YOLO exports it: boxes in pixels, decoded from distributions over bins."""

    class Detector(nn.Module):
        """A head over two scales; boxes by the mean of a softmax over 16 bins, times the stride."""

        def __init__(self) -> None:
            super().__init__()
            self.one = nn.Sequential(nn.Conv2d(3, 24, 8, 8), nn.BatchNorm2d(24), nn.SiLU())
            self.other = nn.Sequential(nn.Conv2d(24, 24, 3, 2, 1), nn.BatchNorm2d(24), nn.SiLU())
            self.heads = nn.ModuleList(nn.Conv2d(24, 64 + 6, 1) for _scale in range(2))
            self.register_buffer("bins", torch.arange(16.0))

        def forward(self, image: Tensor) -> Tensor:
            """Take `[batch, 3, 320, 320]`; give `[batch, 10, places]`."""
            scales, found = [self.one(image)], []
            scales.append(self.other(scales[0]))
            for x, head, stride in zip(scales, self.heads, (8, 16), strict=True):
                size = 320 // stride
                y, x_at = torch.meshgrid(torch.arange(size) + 0.5, torch.arange(size) + 0.5, indexing="ij")
                made = head(x).flatten(2)
                sides = made[:, :64].view(-1, 4, 16, size * size).softmax(2) * self.bins[:, None]
                left, top, right, bottom = sides.sum(2).unbind(1)
                x_at, y = x_at.flatten(), y.flatten()
                boxes = [(right - left) / 2 + x_at, (bottom - top) / 2 + y, left + right, top + bottom]
                found.append(torch.cat([torch.stack(boxes, 1) * stride, torch.sigmoid(made[:, 64:])], 1))
            return torch.cat(found, 2)

    return Detector(), lambda: images(320)


@network()
def suppressed() -> Network:
    """Give a detector that ends in non-maximum suppression."""

    class Suppressed(nn.Module):
        """Boxes around a grid, their scores, and the indices that are left."""

        def __init__(self) -> None:
            super().__init__()
            self.look = nn.Conv2d(3, 5, 8, 8)
            self.register_buffer("places", torch.stack(torch.meshgrid(*[torch.arange(8.0)] * 2, indexing="xy"), -1))

        def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
            """Take one image of 64 pixels a side; give boxes and their scores."""
            made = self.look(image)[0].flatten(1).T
            middle = (self.places.view(-1, 2) + torch.sigmoid(made[:, :2])) * 8
            half = torch.exp(made[:, 2:4].clamp(-1, 1)) * 10
            boxes, scores = torch.cat([middle - half, middle + half], 1), torch.sigmoid(made[:, 4])
            left = torch.ops.torchvision.nms(boxes, scores, 0.4)[:8]
            return boxes[left], scores[left]

    return Suppressed(), lambda: {"image": images(64)["image"][:1]}
