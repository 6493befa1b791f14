"""Results and calibrators in other tools; each module belongs to one of them and needs it when it is called."""
