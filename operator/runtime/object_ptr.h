// An object of a cache. A cache of many keeps them packed (CBOR), because a tree of JSON takes
// eight times as much memory. The tree of a packed object is made when it is first looked at, and
// lives as long as the pointer by which that was done, and copies made of it afterwards.
//
// Thread rule: a pointer belongs to one thread at a time; another thread takes a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::runtime {

// Reads of an object what its users ask for again and again. They know the type.
using Extract = std::function<std::shared_ptr<const void>(const kube::Json&)>;

class ObjectPtr {
 public:
  ObjectPtr() = default;
  ObjectPtr(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): as other pointers
  // Unpacked.
  ObjectPtr(std::shared_ptr<const kube::Json> tree);  // NOLINT(google-explicit-constructor)

  const kube::Json& operator*() const;
  const kube::Json* operator->() const { return &**this; }
  // What the cache's Extract has read of the object. Null if the cache has none.
  template <class T>
  const T* extract() const {
    return stored_ == nullptr ? nullptr : static_cast<const T*>(stored_->extract.get());
  }

  // The same object packed, so far without an extract.
  ObjectPtr Packed() const;
  // Before anybody else has a copy of this pointer to a packed object.
  void SetExtract(std::shared_ptr<const void> extract) { stored_->extract = std::move(extract); }
  // This pointer as it was before anybody looked at the object.
  ObjectPtr WithoutTree() const;
  // Whether the objects are the same in content.
  bool Equals(const ObjectPtr& other) const;
  // Whether it is one object. A cache has another one as soon as an object has changed.
  friend bool operator==(const ObjectPtr& a, const ObjectPtr& b) { return a.stored_ == b.stored_; }
  explicit operator bool() const { return stored_ != nullptr; }

 private:
  struct Stored {
    std::shared_ptr<const kube::Json> tree;  // null: packed
    std::vector<std::uint8_t> packed;
    std::shared_ptr<const void> extract;
  };

  std::shared_ptr<Stored> stored_;
  mutable std::shared_ptr<const kube::Json> tree_;  // of a packed object that was looked at
};

}  // namespace ringmaster::runtime
