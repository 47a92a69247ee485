"""The synthetic street: pictures with their ground truth, for any seed and moment."""
