from ringmaster.data_loaders import (AsyncDataLoaderMixin as AsyncDataLoaderMixin,
                                     BaseDataLoader as BaseDataLoader)
