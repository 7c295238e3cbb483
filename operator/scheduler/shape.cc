#include "operator/scheduler/shape.h"

#include "common/fields/fields.h"

namespace ringmaster::scheduler {
namespace {

Json RulesOf(const Json& pod) {
  const Json& spec = fields::Object(pod, "spec");
  Json rules = Json::object();
  for (const char* field : {"nodeSelector", "affinity", "tolerations"}) {
    const Json& rule = fields::Member(spec, field);
    if (!rule.is_null()) rules[field] = rule;
  }
  return rules;
}

Shape MakeShape(Amounts requests, Json rules, std::string text, ResourceNumbers* numbers) {
  Shape shape{std::move(requests), {{"spec", std::move(rules)}}, std::move(text), {}};
  for (const auto& [resource, n] : shape.requests) {
    if (n > 0) shape.wanted.emplace_back(numbers->Of(resource), n);
  }
  return shape;
}

}  // namespace

ShapePtr Shapes::Of(const Json& pod) { return Find(RulesOf(pod), RequestsOf(pod)); }

ShapePtr Shapes::On(const Shape& shape, const std::string& label, const std::string& value) {
  Json rules = shape.pod["spec"];
  rules["nodeSelector"][label] = value;
  return Find(std::move(rules), shape.requests);
}

ShapePtr Shapes::Find(Json rules, Amounts requests) {
  constexpr std::size_t kMost = 1024;
  if (known_.size() > kMost) {
    std::erase_if(known_, [](const auto& known) { return known.second.expired(); });
  }
  const auto [at, is_new] = known_.try_emplace({rules.dump(), std::move(requests)});
  ShapePtr shape = at->second.lock();
  if (shape == nullptr) {
    shape = std::make_shared<const Shape>(
        MakeShape(at->first.second, std::move(rules), at->first.first, &numbers_));
    at->second = shape;
  }
  return shape;
}

}  // namespace ringmaster::scheduler
