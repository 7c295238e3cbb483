// The NCCL of this machine.
//
// Thread rule: as NcclApi.
#pragma once

#include <memory>

#include "collectives/nccl/nccl_api.h"
#include "collectives/shared_library/shared_library.h"

namespace ringmaster::nccl {

// RM_ERR_UNAVAILABLE: there is none, or one that is older than kOldest, or one whose communicators
// are all blocking. *missing: there is none.
Status LoadNccl(SharedLibrary::Where where, std::unique_ptr<NcclApi>* out, bool* missing);
// The same with this file or library name.
Status LoadNcclFrom(const char* name, std::unique_ptr<NcclApi>* out);

}  // namespace ringmaster::nccl
