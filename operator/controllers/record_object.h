// The record of a job as the API object that holds it. An API server takes a mebibyte of data:
// where the plain form is longer than an older operator could have written either, the record
// stands there compact and deflated (docs/contracts.md, section 7).
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
