"""Retrieval: which tokens of a long context a query attends to.

A method keeps an index of the keys, scores *candidates* (tokens, blocks of tokens or clusters) for a query, and selects
the tokens of the best ones. All methods have one interface (:class:`golden.retrieval.method.RetrievalMethod`), count
what they read and compute, and are deterministic: equal scores go to the lower id, fewer candidates than asked for give
fewer tokens, and what is selected is a list of token ids in ascending order, each once.
"""
