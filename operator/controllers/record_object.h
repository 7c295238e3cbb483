// The quorum record of a job as an API object. An API server accepts a mebibyte of data. A record
// is plain JSON up to the length that older operators could write; a longer one is compact and
// deflated (docs/contracts.md, section 7).
//
// Pure.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "common/membership/quorum_record.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::controllers {

// Puts the record into the ConfigMap.
void PutRecord(const membership::QuorumRecord& record, kube::Json* config_map);
tl::expected<membership::QuorumRecord, std::string> RecordOf(const kube::Json& config_map);

}  // namespace ringmaster::controllers
