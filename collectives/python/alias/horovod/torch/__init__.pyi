from horovod.torch import compression as compression, functions as functions
from horovod.torch import mpi_ops as mpi_ops, optimizer as optimizer
from horovod.torch import sync_batch_norm as sync_batch_norm
from ringmaster.torch import *
