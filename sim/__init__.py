"""The system harness: models, memories, links and GPUs put together, and the command line.

Nothing here loads Amaranth, except the commands that generate hardware, when they run.
"""
