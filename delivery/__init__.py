"""What a Run does: from an issue to a pull request, or to a Failed run that loses nothing."""
