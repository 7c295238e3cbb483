// The structural schema of a CustomResourceDefinition: unknown fields pruned or refused, defaults
// set, values checked. CEL rules (x-kubernetes-validations) are not evaluated here: admission asks
// the parser, which has the same rules.
#pragma once

#include <string>
#include <vector>

#include "operator/local/store/status.h"

namespace ringmaster::local {

// The pointer of a simple JSONPath: /spec/worker of .spec.worker.
Json::json_pointer PointerOf(std::string path);
// Null: nothing is there, or the path is empty or more than a simple one.
Json ValueAt(const Json& object, const std::string& path);

class CrdSchema {
 public:
  // The text of a CustomResourceDefinition, YAML or JSON; the schema of its storage version.
  static tl::expected<CrdSchema, std::string> FromYaml(const std::string& crd_yaml);

  // Removes fields that the schema doesn't know; their paths ("spec.foo").
  std::vector<std::string> Prune(Json& object) const;
  void Default(Json& object) const;
  std::vector<Cause> Validate(const Json& object) const;

  // Whether it has rules of CEL.
  bool has_rules() const { return has_rules_; }
  const std::vector<Json>& printer_columns() const { return printer_columns_; }
  const std::vector<std::string>& short_names() const { return short_names_; }
  const std::vector<std::string>& categories() const { return categories_; }
  // JSON paths of the scale subresource; empty: the defaults below stand.
  std::string spec_replicas_path = ".spec.worker.replicas";
  std::string status_replicas_path = ".status.replicaStatuses.Worker.active";
  std::string label_selector_path;

 private:
  Json schema_;
  bool has_rules_ = false;
  std::vector<Json> printer_columns_;
  std::vector<std::string> short_names_;
  std::vector<std::string> categories_;
};

}  // namespace ringmaster::local
