from horovod.tensorflow import compression as compression, functions as functions
from horovod.tensorflow import mpi_ops as mpi_ops, sync_batch_norm as sync_batch_norm
from ringmaster.tensorflow import *
