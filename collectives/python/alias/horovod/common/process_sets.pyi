from ringmaster.process_sets import (ProcessSet as ProcessSet, add_process_set as add_process_set,
                                     global_process_set as global_process_set,
                                     remove_process_set as remove_process_set)
