from ringmaster.runner import (HorovodRunner as HorovodRunner, log_to_driver as log_to_driver,
                               run as run)
