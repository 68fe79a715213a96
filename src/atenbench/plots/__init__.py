"""Pictures of the set, one module for each; :mod:`atenbench.plots.draw` writes them."""
