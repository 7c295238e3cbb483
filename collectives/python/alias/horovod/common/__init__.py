"""Horovod's names for what is common to all frameworks."""
