#include "operator/kubelet/log_chunk.h"

#include "common/fields/fields.h"
#include "operator/kube/base64.h"
#include "operator/kube/dns_names.h"

namespace ringmaster::kubelet {

const kube::Resource& LogChunks() {
  static const kube::Resource kLogChunks = {"node.ringmaster.dev", "v1", "logchunks", "LogChunk",
                                            true};
  return kLogChunks;
}

kube::Json ToJson(const LogChunk& chunk) {
  return {{"apiVersion", LogChunks().ApiVersion()},
          {"kind", LogChunks().kind},
          {"metadata", {{"name", chunk.pod}, {"namespace", chunk.ns}}},
          {"spec",
           {{"pod", chunk.pod},
            {"uid", chunk.uid},
            {"container", chunk.container},
            {"at", chunk.at},
            {"start", chunk.start},
            {"running", chunk.running},
            {"data", kube::EncodeBase64(chunk.bytes)}}}};
}

tl::expected<LogChunk, std::string> ParseLogChunk(const kube::Json& object) {
  const kube::Json& spec = fields::Member(object, "spec");
  LogChunk chunk;
  chunk.pod = fields::Text(spec, "pod");
  chunk.uid = fields::Text(spec, "uid");
  chunk.container = fields::Text(spec, "container");
  chunk.ns = fields::TextAt(object, "/metadata/namespace");
  // All become parts of a path.
  if (!kube::IsDnsLabel(chunk.ns))
    return tl::unexpected("metadata.namespace: \"" + chunk.ns + "\" is no name");
  if (!kube::IsDnsName(chunk.pod))
    return tl::unexpected("spec.pod: \"" + chunk.pod + "\" is no name");
  if (!kube::IsDnsLabel(chunk.container))
    return tl::unexpected("spec.container: \"" + chunk.container + "\" is no name");
  if (chunk.uid.empty()) return tl::unexpected<std::string>("spec.uid is missing");
  chunk.at = fields::Unsigned(spec, "at");
  chunk.start = fields::Unsigned(spec, "start");
  chunk.running = fields::Flag(spec, "running");
  auto bytes = kube::DecodeBase64(fields::Text(spec, "data"));
  if (!bytes) return tl::unexpected<std::string>("spec.data is not base64");
  chunk.bytes = std::move(*bytes);
  return chunk;
}

kube::Json LogAnswer(std::uint64_t next) { return {{"next", next}}; }

std::uint64_t NextOf(const kube::Json& answer) {
  return fields::Unsigned(fields::Member(answer, "status"), "next");
}

}  // namespace ringmaster::kubelet
