"""Stored predictions: networks on ImageNet, and models on UCI data sets."""

import os
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("CALIBRANT_DATA") or ROOT.parent / "shared" / "data")
PREDICTIONS = ROOT / "research" / "reproduction" / "predictions"

Columns = tuple[np.ndarray, np.ndarray]

ALGORITHMS = ("LR", "SVM", "RF", "GB", "MLP")
SETS = (
    "abalone",
    "coil_2000",
    "isolet",
    "letter_img",
    "mammography",
    "optical_digits",
    "pen_digits",
    "satimage",
    "spambase",
    "webpage",
)
NETWORKS = {"AlexNet": "alexnet", "VGG19": "vgg19", "Res18": "resnet18", "Res50": "resnet50", "Res152": "resnet152"}


class NoDataError(Exception):
    """Data of a table are missing; the message names them and how to get them."""


def imagenet(network: str) -> Columns:
    """Return the outcomes (a dog or not) of 50,000 pictures, and the predictions of a network."""
    path = DATA / "imagenet_dogs.npz"
    if not path.exists():
        raise NoDataError(
            f"{path} is not here: set CALIBRANT_DATA to a folder with the scores that the authors published "
            "(github.com/facebookresearch/tce, CC BY-NC), as arrays alexnet, vgg19, ... and labels."
        )
    with np.load(path) as scores:
        return scores["labels"], scores[NETWORKS[network]]


def uci(name: str, algorithm: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return outcomes and predictions of the test rows, and their order after the sort of the authors' program."""
    path = PREDICTIONS / f"{name}-{algorithm}.npz"
    if not path.exists():
        raise NoDataError(f"{path} is not here: make study NAME=uci_fit makes it.")
    with np.load(path) as kept:
        return kept["y"], kept["p"], kept["order"].astype(np.int64)
