"""Golden models: what every nearkv unit must compute, in NumPy."""
