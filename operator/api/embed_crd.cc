// Build tool: turns the CRD's YAML into a header with the equivalent JSON, which is parsed many
// times faster at start.
// rm_embed_crd crds/x.yaml crd_json.h
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "operator/kube/yaml.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: rm_embed_crd CRD.yaml OUT.h\n");
    return 2;
  }
  std::ifstream in(argv[1]);
  std::stringstream text;
  text << in.rdbuf();
  const auto documents = ringmaster::kube::YamlToJson(text.str());
  if (!documents || documents->size() != 1) {
    std::fprintf(stderr, "%s: %s\n", argv[1],
                 documents ? "must hold one document" : documents.error().c_str());
    return 1;
  }
  std::ofstream out(argv[2]);
  out << "// Made by the build from crds/.\n#pragma once\n\nnamespace ringmaster::api {\n\n"
         "inline constexpr char kCrdJson[] = R\"CRD("
      << documents->front().dump() << ")CRD\";\n\n}  // namespace ringmaster::api\n";
  return out.flush() ? 0 : 1;
}
