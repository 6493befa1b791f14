"""Point predictions of the mean of a number."""
