#include "collectives/engine/state_registry.h"

#include <cstring>

namespace ringmaster::engine {
namespace {

const char kHowTo[] =
    "register state with rm_state_register() or rm_state_callbacks() before the first step, on "
    "every worker";

}  // namespace

Status StateRegistry::Register(const std::string& name, void* data, size_t bytes) {
  if (name.empty()) return {RM_ERR_INVALID, "state: name is empty"};
  if (data == nullptr && bytes > 0) {
    return {RM_ERR_INVALID,
            "state '" + name + "': data is null, bytes is " + std::to_string(bytes)};
  }
  sync::MutexLock lock(&mu_);
  buffers_[name] = {name, data, bytes};
  return {};
}

Status StateRegistry::Unregister(const std::string& name) {
  sync::MutexLock lock(&mu_);
  if (buffers_.erase(name) == 0) return {RM_ERR_INVALID, "state '" + name + "' is not registered"};
  return {};
}

void StateRegistry::SetCallbacks(rm_state_save_fn save, rm_state_load_fn load, void* user) {
  sync::MutexLock lock(&mu_);
  callbacks_ = {save, load, user};
}

bool StateRegistry::empty() const {
  sync::MutexLock lock(&mu_);
  return buffers_.empty() && callbacks_.load == nullptr;
}

Status StateRegistry::Save(std::vector<StateSegment>* segments) {
  Callbacks callbacks;
  {
    sync::MutexLock lock(&mu_);
    for (const auto& [name, segment] : buffers_) segments->push_back(segment);
    callbacks = callbacks_;
  }
  if (callbacks.save != nullptr) {
    const void* data = nullptr;
    size_t bytes = 0;
    if (const int code = callbacks.save(callbacks.user, &data, &bytes); code != 0) {
      return {RM_ERR_INTERNAL, "the save callback of the donor returned " + std::to_string(code)};
    }
    segments->push_back({"", const_cast<void*>(data), bytes});
  }
  if (segments->empty()) {
    return {RM_ERR_NO_STATE,
            std::string("a worker joined and the job has no state to give it: ") + kHowTo};
  }
  return {};
}

Status StateRegistry::Load(const std::vector<StateSegment>& segments) {
  Callbacks callbacks;
  std::map<std::string, StateSegment> buffers;
  {
    sync::MutexLock lock(&mu_);
    callbacks = callbacks_;
    buffers = buffers_;
  }
  if (buffers.empty() && callbacks.load == nullptr) {
    return {RM_ERR_NO_STATE,
            std::string("this worker joined and has no state registered to load: ") + kHowTo};
  }
  size_t blobs = 0;
  for (const StateSegment& segment : segments) {
    if (segment.name.empty()) {
      ++blobs;
      if (callbacks.load == nullptr) {
        return {RM_ERR_NO_STATE,
                "the job gives state by callbacks and this worker has no load callback"};
      }
      continue;
    }
    const auto own = buffers.find(segment.name);
    if (own == buffers.end()) {
      return {RM_ERR_NO_STATE,
              "state '" + segment.name + "' of the job is not registered in this worker"};
    }
    if (own->second.bytes != segment.bytes) {
      return {RM_ERR_MISMATCH,
              "state '" + segment.name + "' has " + std::to_string(own->second.bytes) +
                  " bytes in this worker and " + std::to_string(segment.bytes) + " in the job"};
    }
  }
  if (segments.size() - blobs != buffers.size() || (blobs == 0 && callbacks.load != nullptr)) {
    return {RM_ERR_MISMATCH,
            "this worker has registered state that the job's other workers have not"};
  }
  for (const StateSegment& segment : segments) {
    if (segment.name.empty()) {
      if (const int code = callbacks.load(callbacks.user, segment.data, segment.bytes); code != 0) {
        return {RM_ERR_INTERNAL, "the load callback returned " + std::to_string(code)};
      }
    } else if (segment.bytes > 0) {
      std::memcpy(buffers[segment.name].data, segment.data, segment.bytes);
    }
  }
  return {};
}

}  // namespace ringmaster::engine
