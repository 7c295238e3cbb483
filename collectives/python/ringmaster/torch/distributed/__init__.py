"""The backend "ringmaster" of torch.distributed: scripts for DistributedDataParallel on Ringmaster.

    import ringmaster.torch.distributed as rmd
    torch.distributed.init_process_group("ringmaster")

Ranks and sizes come from the job, so init_process_group() needs neither rank=, world_size= nor
MASTER_ADDR. docs/python.md says what a script does to be elastic. Importing this module makes
torch.distributed's init_process_group() and new_group() know the backend; with other backends they
are what they were.
"""

from ringmaster.torch.distributed import founding
from ringmaster.torch.distributed.exact_mean import exact_mean
from ringmaster.torch.distributed.process_group import WorldChangedError

__all__ = ["WorldChangedError", "exact_mean"]

founding.register()
