#include "operator/controllers/record_object.h"

#include <optional>

#include "common/fields/fields.h"
#include "common/membership/compact_record.h"
#include "common/membership/state_json.h"
#include "operator/kube/base64.h"
#include "operator/kube/deflate.h"

namespace ringmaster::controllers {
namespace {

constexpr char kKey[] = "record";
constexpr char kPlain[] = "data";
constexpr char kPacked[] = "binaryData";
// An API server accepts 1,048,576 bytes, including the key.
constexpr std::size_t kMostPlainBytes = 1'000'000;
// As much as the reader of the plain form accepts.
constexpr std::size_t kMostTextBytes = 16u << 20;

}  // namespace

void PutRecord(const membership::QuorumRecord& record, kube::Json* config_map) {
  const std::string plain = membership::EncodeRecord(record);
  if (plain.size() <= kMostPlainBytes) {
    (*config_map)[kPlain][kKey] = plain;
  } else {
    (*config_map)[kPacked][kKey] =
        kube::EncodeBase64(kube::Deflate(membership::EncodeCompactRecord(record)));
  }
}

tl::expected<membership::QuorumRecord, std::string> RecordOf(const kube::Json& config_map) {
  const std::string packed = fields::Text(fields::Member(config_map, kPacked), kKey);
  if (packed.empty()) {
    return membership::DecodeRecord(fields::Text(fields::Member(config_map, kPlain), kKey));
  }
  const std::optional<std::string> bytes = kube::DecodeBase64(packed);
  const auto text = bytes ? kube::Inflate(*bytes, kMostTextBytes) : std::nullopt;
  if (!text) return tl::unexpected(std::string("its binaryData is not a deflated record"));
  return membership::DecodeCompactRecord(*text);
}

}  // namespace ringmaster::controllers
