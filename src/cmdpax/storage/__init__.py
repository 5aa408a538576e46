"""Files as cmdpax handles them: read within limits, written whole, by one process at a time.

What is in the files is decided elsewhere. Nothing is ever unpickled, and nothing that is read is a
reason to import a module.
"""
