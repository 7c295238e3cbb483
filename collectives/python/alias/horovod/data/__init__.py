"""Horovod's name for its base classes of data loaders."""

from ringmaster.data_loaders import AsyncDataLoaderMixin, BaseDataLoader

__all__ = ["AsyncDataLoaderMixin", "BaseDataLoader"]
