"""One self-contained page over all problems; :mod:`atenbench.explorer.page` writes it."""
