// Label and field selectors, interpreted as by the API server.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::kube {

// "a=b,c!=d,e in (x,y),f notin (z),g,!h". `!=` and `notin` also match objects without the label.
class LabelSelector {
 public:
  // The error is a sentence that quotes the bad part.
  static tl::expected<LabelSelector, std::string> Parse(std::string_view text);
  // A metav1.LabelSelector: {matchLabels, matchExpressions}. An empty object matches everything.
  static tl::expected<LabelSelector, std::string> FromJson(const Json& selector);
  bool Matches(const Json& object) const;

 private:
  enum class Op { kIn, kNotIn, kExists, kNotExists };
  struct Requirement {
    std::string key;
    Op op;
    std::vector<std::string> values;
  };
  bool MatchesOne(const Requirement& requirement, const Json& labels) const;
  std::vector<Requirement> requirements_;
};

// "metadata.name=x,status.phase!=Running": only equality is supported. `allowed` lists the paths
// that the resource supports.
class FieldSelector {
 public:
  static tl::expected<FieldSelector, std::string> Parse(std::string_view text,
                                                        const std::vector<std::string>& allowed);
  bool Matches(const Json& object) const;

 private:
  struct Requirement {
    std::vector<std::string> path;
    std::string value;
    bool equal;
  };
  std::vector<Requirement> requirements_;
};

}  // namespace ringmaster::kube
