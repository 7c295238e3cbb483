from ringmaster import (HorovodInternalError as HorovodInternalError,
                        HostsUpdatedInterrupt as HostsUpdatedInterrupt)

class HorovodVersionMismatchError(ImportError): ...
