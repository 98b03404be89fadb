"""Comparisons: published and peers' results beside ours, each with its reference, domain and sampling."""
