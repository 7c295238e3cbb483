from ringmaster.torch.elastic import *
