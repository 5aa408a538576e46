"""The model: a finite-horizon CMDP, its two storages, its files, and the values of policies."""
