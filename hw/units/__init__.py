"""Hardware units, one a file. Loading this package loads nothing."""
