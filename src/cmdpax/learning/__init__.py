"""Learning in simulation: runs in compiled batches, their accounts, and files to go on from."""
