"""Movement of KV between memories: what crosses a link, how it is checked, and how a move never loses a token."""
