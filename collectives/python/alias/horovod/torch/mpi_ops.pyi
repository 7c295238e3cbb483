from ringmaster.torch import *
