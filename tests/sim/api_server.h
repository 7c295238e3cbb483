// The API server of a simulated cluster: jobs, pods and config maps with versions, finalizers and
// watches that are told of every change. It forgets nothing and never fails; OperatorsApi is a
// client of it whose calls do. An object that is stored never changes: whoever wants to keep one
// shares it.
//
// Thread rule: one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/kube_api.h"
#include "operator/runtime/clock.h"

namespace ringmaster::app::sim {

using ObjectPtr = std::shared_ptr<const kube::Json>;

struct Change {
  kube::WatchEvent::Type type = kube::WatchEvent::Type::kAdded;
  ObjectPtr object;
};

class ApiServer {
 public:
  // Told of each change after it was made.
  using Watcher = std::function<void(const kube::Resource& resource, const Change& change)>;

  // `name_uid` names the uid of an object that is being made.
  ApiServer(runtime::Clock clock,
            std::function<std::string(const kube::Resource&, const kube::Json&)> name_uid,
            Watcher watcher)
      : clock_(std::move(clock)), name_uid_(std::move(name_uid)), watcher_(std::move(watcher)) {}

  // None of the objects is null.
  kube::Result<ObjectPtr> Get(const kube::Resource& resource, const std::string& name) const;
  std::vector<ObjectPtr> All(const kube::Resource& resource) const;
  kube::Result<ObjectPtr> Create(const kube::Resource& resource, kube::Json object);
  // Refused with kConflict where the object carries a version and that is old.
  kube::Result<ObjectPtr> Update(const kube::Resource& resource, const kube::Json& object,
                                 const std::string& subresource);
  kube::Result<ObjectPtr> Patch(const kube::Resource& resource, const std::string& name,
                                kube::Json patch, const std::string& subresource);
  kube::Result<void> Delete(const kube::Resource& resource, const std::string& name,
                            const kube::DeleteOptions& options);

 private:
  using Key = std::pair<std::string, std::string>;  // plural, name
  struct Entry {
    ObjectPtr object;
    bool released = false;  // no kubelet has it any more: it goes with its last finalizer
  };
  ObjectPtr Write(const kube::Resource& resource, Entry* entry, kube::Json object);
  bool RemoveIfDue(const kube::Resource& resource, const Key& key);

  const runtime::Clock clock_;
  const std::function<std::string(const kube::Resource&, const kube::Json&)> name_uid_;
  const Watcher watcher_;
  std::map<Key, Entry> entries_;
  std::uint64_t version_ = 0;
};

// What becomes of one call.
enum class CallFate { kDone, kRefused, kAnswerLost };

class OperatorsApi final : public kube::KubeApi {
 public:
  OperatorsApi(ApiServer* server, std::function<CallFate()> fate)
      : server_(server), fate_(std::move(fate)) {}

  kube::Result<kube::Json> Get(const kube::Resource& resource, const std::string& ns,
                               const std::string& name) override;
  kube::Result<kube::List> ListAll(const kube::Resource& resource, const std::string& ns,
                                   const kube::ListOptions& options) override;
  kube::Result<kube::Json> Create(const kube::Resource& resource, const std::string& ns,
                                  const kube::Json& object) override;
  kube::Result<kube::Json> Update(const kube::Resource& resource, const std::string& ns,
                                  const kube::Json& object,
                                  const std::string& subresource) override;
  kube::Result<kube::Json> Patch(const kube::Resource& resource, const std::string& ns,
                                 const std::string& name, const kube::Json& patch,
                                 const kube::PatchOptions& options) override;
  kube::Result<void> Delete(const kube::Resource& resource, const std::string& ns,
                            const std::string& name, const kube::DeleteOptions& options) override;
  kube::Result<void> Watch(const kube::Resource& resource, const std::string& ns,
                           const kube::WatchOptions& options, const kube::WatchHandler& on_event,
                           std::stop_token stop) override;
  kube::Result<void> PodLog(const std::string& ns, const std::string& pod,
                            const std::string& container, bool follow,
                            const std::function<bool(std::string_view)>& on_text,
                            std::stop_token stop) override;

 private:
  template <class Call>
  auto Do(const Call& call) -> decltype(call());
  // The same for a call that answers an object, of which the caller gets a copy.
  template <class Call>
  kube::Result<kube::Json> Ask(const Call& call);

  ApiServer* const server_;
  const std::function<CallFate()> fate_;
};

}  // namespace ringmaster::app::sim
