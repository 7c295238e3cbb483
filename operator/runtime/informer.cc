#include "operator/runtime/informer.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ringmaster::runtime {

Informer::Informer(std::shared_ptr<kube::KubeApi> api, const kube::Resource& resource,
                   const InformerOptions& options, const Handler& handler)
    : name_(options.name.empty() ? resource.plural : options.name) {
  std::vector<std::string> namespaces = options.namespaces;
  if (namespaces.empty()) namespaces.emplace_back();
  for (std::string& ns : namespaces) {
    reflectors_.push_back(std::make_unique<Reflector>(
        api, resource,
        ReflectorOptions{.ns = std::move(ns),
                         .label_selector = options.label_selector,
                         .objects = {options.keep, options.stores, options.index, options.storage,
                                     options.unread},
                         .relist_backoff = options.relist_backoff,
                         .max_relist_backoff = options.max_relist_backoff,
                         .short_watch = options.short_watch},
        handler));
  }
}

void Informer::Start() {
  for (const auto& reflector : reflectors_) reflector->Start();
}

void Informer::Stop() {
  for (const auto& reflector : reflectors_) reflector->RequestStop();
  for (const auto& reflector : reflectors_) reflector->Stop();
}

bool Informer::WaitForSync(std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + timeout;
  return std::all_of(reflectors_.begin(), reflectors_.end(), [end](const auto& reflector) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    return reflector->WaitForSync(std::max(left, std::chrono::milliseconds(0)));
  });
}

Informer::State Informer::state() const {
  State state{.resource = name_, .synced = true};
  for (const auto& reflector : reflectors_) {
    ListWatchHealth::State health = reflector->health();
    state.synced = state.synced && health.synced;
    if (state.error.empty()) state.error = std::move(health.error);
    state.failures += health.failures;
    const bool first = reflector == reflectors_.front();
    state.last_turn = first ? health.last_turn : std::min(state.last_turn, health.last_turn);
  }
  return state;
}

Reflector* Informer::Of(const std::string& ns) const {
  for (const auto& reflector : reflectors_) {
    if (reflector->ns().empty() || reflector->ns() == ns) return reflector.get();
  }
  return nullptr;
}

std::vector<ObjectPtr> Informer::All() const {
  std::vector<ObjectPtr> all;
  for (const auto& reflector : reflectors_) {
    auto some = reflector->cache().All();
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

ObjectPtr Informer::Get(const std::string& ns, const std::string& name) const {
  const Reflector* reflector = Of(ns);
  return reflector == nullptr ? nullptr : reflector->cache().Get(ns, name);
}

std::vector<ObjectPtr> Informer::Indexed(const std::string& ns, const std::string& value) const {
  const Reflector* reflector = Of(ns);
  return reflector == nullptr ? std::vector<ObjectPtr>() : reflector->cache().Indexed(value);
}

void Informer::Take(kube::WatchEvent event) {
  Reflector* reflector = Of(MetaField(event.object, "namespace"));
  if (reflector != nullptr) reflector->OnWatchEvent(std::move(event));
}

bool Informer::Observe(kube::Json object) {
  Reflector* reflector = Of(MetaField(object, "namespace"));
  return reflector != nullptr && reflector->Observe(std::move(object));
}

void Informer::ObserveDeletion(const kube::Json& object, const std::string& since) {
  Reflector* reflector = Of(MetaField(object, "namespace"));
  if (reflector != nullptr) reflector->ObserveDeletion(object, since);
}

}  // namespace ringmaster::runtime
