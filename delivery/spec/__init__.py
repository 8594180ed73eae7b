"""Spec runs: an issue with sub-issues, each of which is a Run of its own into the branch of the whole."""
