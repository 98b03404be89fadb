"""One module a command: each adds its parser, and imports what it needs when it runs."""
