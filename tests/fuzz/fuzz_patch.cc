// Writes to the embedded API server: create, merge patch, JSON patch, apply, update and delete,
// with any JSON, and watches that look on. The input has a write in each line:
//
//   {"data":{}}                      is patched, applied and updated as the ConfigMap "a", and
//                                    created as a pod
//   VERB RESOURCE NAME [OPTION...] [JSON]
//                                    one of Perform(); "@uid" in the JSON is the uid of "a"
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/fields/fields.h"
#include "common/fields/parse.h"
#include "operator/kube/resources.h"
#include "operator/local/store/store.h"

namespace fields = ringmaster::fields;
namespace kube = ringmaster::kube;
namespace local = ringmaster::local;
using kube::Json;

namespace {

constexpr char kNamespace[] = "default";
constexpr std::chrono::milliseconds kNoWait{0};
// So few that a line can change more.
constexpr std::size_t kHistory = 8;

// Ends the fuzzer: what always holds does not.
void Demand(bool holds) {
  if (!holds) std::abort();
}

// What a client knows that watches.
class Watcher {
 public:
  Watcher(local::Store* store, const kube::Resource& resource, local::WatchRequest request)
      : store_(store), resource_(resource), request_(std::move(request)) {}

  void CatchUp() {
    if (!cursor_) Begin();
    while (true) {
      auto event = cursor_->Next(kNoWait);
      if (!event) {
        Begin();  // the history has lost what came next
      } else if (*event) {
        Learn(**event);
      } else {
        return;
      }
    }
  }
  void CompareWithList() const {
    const auto list =
        store_->List(resource_, kNamespace, {request_.label_selector, request_.field_selector});
    Demand(list && list->items.size() == known_.size());
    for (const Json& item : list->items) {
      const auto known = known_.find(item["metadata"]["name"]);
      Demand(known != known_.end() && known->second == item);
    }
  }

 private:
  void Begin() {
    known_.clear();
    auto cursor = store_->Watch(resource_, kNamespace, request_);
    Demand(cursor.has_value());
    cursor_ = std::move(*cursor);
  }
  void Learn(const kube::WatchEvent& event) {
    const std::string name = event.object["metadata"]["name"];
    const bool is_new = event.type == kube::WatchEvent::Type::kAdded;
    Demand((known_.count(name) == 0) == is_new);
    if (event.type == kube::WatchEvent::Type::kDeleted) {
      known_.erase(name);
    } else {
      known_[name] = event.object;
    }
  }

  local::Store* const store_;
  const kube::Resource& resource_;
  const local::WatchRequest request_;
  std::optional<local::WatchCursor> cursor_;
  std::map<std::string, Json> known_;
};

// A line that is no JSON.
struct Order {
  std::string verb, name;
  const kube::Resource* resource = nullptr;
  std::map<std::string, std::string> options;  // "force" or "sub=status"
  Json json;

  bool Has(const char* option) const { return options.count(option) > 0; }
  std::string Text(const char* option) const {
    const auto found = options.find(option);
    return found == options.end() ? "" : found->second;
  }
};

const kube::Resource* ResourceOf(const std::string& plural) {
  for (const kube::Resource& resource : kube::AllResources()) {
    if (resource.plural == plural) return &resource;
  }
  return nullptr;
}

class World {
 public:
  World() : store_({.history = kHistory, .now = [] { return std::chrono::sys_seconds{}; }}) {
    const Json base = {{"metadata", {{"name", "a"}}}, {"data", {{"k", "v"}}}};
    (void)store_.Create(kube::ConfigMaps(), kNamespace, base);
    for (const kube::Resource* resource : {&kube::ConfigMaps(), &kube::Pods()}) {
      watchers_.emplace_back(&store_, *resource, local::WatchRequest{});
      watchers_.emplace_back(&store_, *resource, local::WatchRequest{.label_selector = "l=a"});
    }
    watchers_.emplace_back(&store_, kube::Pods(),
                           local::WatchRequest{.field_selector = "status.phase=Pending"});
    CatchUp();
  }

  void Run(const std::string& line) {
    if (line.starts_with("{")) {
      Write(fields::ParseOrDiscard(line));
    } else {
      Perform(Read(line));
    }
    CatchUp();
  }
  void CompareWithLists() const {
    for (const Watcher& watcher : watchers_) watcher.CompareWithList();
  }

 private:
  void CatchUp() {
    for (Watcher& watcher : watchers_) watcher.CatchUp();
  }

  // What is refused has changed nothing, and what is answered is what is there.
  template <class Act>
  void Check(const Order& order, const Act& act) {
    const std::uint64_t before = store_.version();
    const local::Answer<Json> answer = act();
    const bool dry = order.Has("dry") && order.verb != "delete";  // which knows no trial
    if (!answer || dry) Demand(store_.version() == before);
    if (!answer || dry || order.Text("sub") == "scale") return;
    const auto& meta = (*answer)["metadata"];
    const auto found = store_.Get(*order.resource, fields::Text(meta, "namespace"), meta["name"]);
    if (found && (*found)["metadata"]["resourceVersion"] == meta["resourceVersion"])
      Demand(*found == *answer);
  }

  void Write(const Json& json) {
    if (json.is_discarded()) return;
    Order order{"merge", "a", &kube::ConfigMaps(), {}, json};
    Perform(order);
    order.options["as"] = "fuzz";
    order.verb = "apply";
    Perform(order);
    order.verb = "update";
    Perform(order);
    order.verb = "create";
    order.resource = &kube::Pods();
    Perform(order);
  }

  Order Read(const std::string& line) const {
    const std::size_t end = std::min(line.find_first_of("{["), line.size());
    Order order;
    std::istringstream words(line.substr(0, end));
    std::string plural;
    words >> order.verb >> plural >> order.name;
    order.resource = ResourceOf(plural);
    for (std::string word; words >> word;) {
      const std::size_t equals = std::min(word.find('='), word.size());
      order.options[word.substr(0, equals)] = equals == word.size() ? "" : word.substr(equals + 1);
    }
    order.json = fields::ParseOrDiscard(WithUid(line.substr(end)));
    return order;
  }
  std::string WithUid(std::string text) const {
    const auto a = store_.Get(kube::ConfigMaps(), kNamespace, "a");
    const std::string mark = "@uid", uid = a ? (*a)["metadata"]["uid"] : Json("gone");
    for (std::size_t at = 0; (at = text.find(mark, at)) != text.npos; at += uid.size())
      text.replace(at, mark.size(), uid);
    return text;
  }

  void Perform(const Order& order) {
    if (order.resource == nullptr) return;
    const kube::Resource& resource = *order.resource;
    const std::string ns = resource.namespaced ? kNamespace : "";
    if (order.verb == "delete") {
      return Check(order, [&] { return Delete(order, ns); });
    } else if (order.verb == "bind") {
      (void)store_.Bind(ns, order.name, order.Text("node"));
      return;
    } else if (order.verb == "watch") {
      return Watch(order);
    }
    if (order.json.is_discarded()) return;
    local::WriteOptions options;
    options.dry_run = order.Has("dry");
    if (order.verb == "create") {
      Check(order, [&] { return store_.Create(resource, ns, order.json, options); });
    } else if (order.verb == "update") {
      const std::string name = order.name.empty() ? "a" : order.name;
      Check(order, [&] {
        return store_.Update(resource, ns, name, order.json, order.Text("sub"), options);
      });
    } else {
      Check(order, [&] { return store_.Patch(resource, ns, order.name, PatchOf(order), options); });
    }
  }

  static local::PatchRequest PatchOf(const Order& order) {
    using Type = local::PatchRequest::Type;
    const Type type = order.verb == "json"    ? Type::kJson
                      : order.verb == "apply" ? Type::kApply
                                              : Type::kMerge;
    return {type, order.json, order.Text("sub"), order.Text("as"), order.Has("force")};
  }

  local::Answer<Json> Delete(const Order& order, const std::string& ns) {
    kube::DeleteOptions options;
    if (order.Has("grace")) options.grace_period_seconds = std::atoi(order.Text("grace").c_str());
    options.propagation = order.Text("how");
    options.uid = order.Text("uid");
    options.resource_version = order.Text("version");
    auto deleted = store_.Delete(*order.resource, ns, order.name, options);
    // It may be answered as it was.
    if (!deleted) return deleted;
    return store_.Get(*order.resource, ns, order.name).value_or(std::move(*deleted));
  }

  // The name is the version from which on.
  void Watch(const Order& order) {
    auto cursor = store_.Watch(*order.resource, kNamespace,
                               {order.Text("labels"), order.Text("fields"), order.name});
    if (!cursor) return;
    for (auto event = cursor->Next(kNoWait); event && *event; event = cursor->Next(kNoWait))
      Demand((*event)->object.is_object());
    Demand(cursor->version() <= store_.version());
  }

  local::Store store_;
  std::vector<Watcher> watchers_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  World world;
  std::istringstream lines(std::string(reinterpret_cast<const char*>(data), size));
  for (std::string line; std::getline(lines, line);) world.Run(line);
  world.CompareWithLists();
  return 0;
}
