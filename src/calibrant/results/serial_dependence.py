"""`SerialDependence`: how far errors of rows in time order depend on each other, and blocks of times."""

from dataclasses import dataclass
from typing import Any

from calibrant._support.errors import Note


@dataclass(frozen=True)
class SerialDependence:
    """Estimated dependence between errors of neighbouring times, and the blocks of consecutive times that follow.

    Attributes
    ----------
    n_times : int
        Number of distinct times.
    n_blocks : int
        Number of blocks of consecutive times, which are resampled and tested as clusters.
    autocorrelation : float
        Correlation of the errors of neighbouring times, summed per time.
    reach : float
        Over how many times errors depend on each other: the mean distance :math:`|k|` of two times, weighted by their
        autocorrelation; 0 for independent times.

    See Also
    --------
    evaluate

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> result = cb.evaluate(rng.random(2000) < p, p, time=np.arange(2000) // 10, n_resamples=99)
    >>> result.serial_dependence.n_times, result.serial_dependence.n_blocks > 20
    (200, True)
    """

    n_times: int
    n_blocks: int
    autocorrelation: float
    reach: float

    @property
    def block_length(self) -> float:
        """Mean number of times in a block."""
        return self.n_times / self.n_blocks

    @property
    def note(self) -> Note:
        """A note that states the blocks."""
        shown = round(self.autocorrelation, 2) + 0.0  # not -0.00
        if self.n_blocks == self.n_times:
            text = (
                "{count} times are resampled and tested as clusters; errors of neighbouring times are not shown to "
                f"depend on each other (autocorrelation {shown:.2f})."
            )
            return Note("time_blocks", self.n_blocks, text)
        text = (
            f"Errors of neighbouring times may depend on each other (autocorrelation {shown:.2f}): "
            f"{self.n_times:,} times are {{count}} blocks of about {self.block_length:.3g}, which are resampled and "
            "tested as clusters."
        )
        return Note("time_blocks", self.n_blocks, text)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON.

        Returns
        -------
        dict
            The attributes, and the mean number of times in a block.
        """
        return {
            "n_times": self.n_times,
            "n_blocks": self.n_blocks,
            "block_length": self.block_length,
            "autocorrelation": self.autocorrelation,
            "reach": self.reach,
        }
