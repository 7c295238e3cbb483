from ringmaster.tensorflow import *
