"""Calibration of a Lightning model after each epoch: `CalibrationCounter` counts the scores of the validation batches.

The counter needs constant memory, adds up over processes, and its table feeds `cb.evaluate` at the end.

    pip install "calibrant[torch,plot]" lightning
    python examples/lightning/validate_calibration.py
"""

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

import calibrant as cb


class Classifier(lightning.LightningModule):
    """A small network for one event, trained too long on few rows: it becomes overconfident."""

    def __init__(self, n_features: int = 20) -> None:
        super().__init__()
        self.network = torch.nn.Sequential(
            torch.nn.Linear(n_features, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1), torch.nn.Flatten(0)
        )
        self.ece = cb.metrics.CalibrationCounter("ece")
        self.history: list[float] = []

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        """Return the log loss of a batch."""
        x, y = batch
        return torch.nn.functional.binary_cross_entropy_with_logits(self.network(x), y)

    def validation_step(self, batch: list[torch.Tensor]) -> None:
        """Count a batch; Lightning computes the metric over the epoch and resets it."""
        x, y = batch
        self.ece.update(torch.sigmoid(self.network(x)), y.long())

    def on_validation_epoch_end(self) -> None:
        """Log the error of the epoch, and keep the table of the last one."""
        value = self.ece.compute()
        self.log("ece", value, prog_bar=True)
        self.history.append(float(value))
        self.table = self.ece.table()
        self.ece.reset()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimizer."""
        return torch.optim.Adam(self.parameters(), lr=0.01)


def rows(n: int, seed: int) -> TensorDataset:
    """Return features and outcomes of a logistic model."""
    make = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 20, generator=make)
    return TensorDataset(x, (torch.rand(n, generator=make) < torch.sigmoid(x[:, 0] + x[:, 1])).float())


def main(epochs: int = 20) -> cb.Evaluation:
    """Train, and evaluate the calibration of the last epoch on the validation rows."""
    lightning.seed_everything(0, verbose=False)
    model = Classifier()
    trainer = lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(model, DataLoader(rows(500, 0), batch_size=50), DataLoader(rows(5000, 1), batch_size=500))
    print("ECE of each epoch:", " ".join(f"{value:.3f}" for value in model.history))
    result = cb.evaluate(model.table, n_resamples=199)
    print(result)
    return result


if __name__ == "__main__":
    main()
