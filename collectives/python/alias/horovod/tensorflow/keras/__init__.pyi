from ringmaster.keras import *
