#include "operator/runtime/object_ptr.h"

#include <utility>

namespace ringmaster::runtime {

ObjectPtr::ObjectPtr(std::shared_ptr<const kube::Json> tree) {
  if (tree == nullptr) return;
  stored_ = std::make_shared<Stored>(Stored{.tree = std::move(tree)});
}

const kube::Json& ObjectPtr::operator*() const {
  if (stored_->tree != nullptr) return *stored_->tree;
  if (tree_ == nullptr) {
    tree_ = std::make_shared<const kube::Json>(kube::Json::from_cbor(stored_->packed));
  }
  return *tree_;
}

ObjectPtr ObjectPtr::Packed() const {
  Stored stored;
  kube::Json::to_cbor(**this, stored.packed);
  stored.packed.shrink_to_fit();
  ObjectPtr packed;
  packed.stored_ = std::make_shared<Stored>(std::move(stored));
  return packed;
}

ObjectPtr ObjectPtr::WithoutTree() const {
  ObjectPtr plain;
  plain.stored_ = stored_;
  return plain;
}

bool ObjectPtr::Equals(const ObjectPtr& other) const {
  if (stored_ == nullptr || other.stored_ == nullptr) return stored_ == other.stored_;
  const bool packed = stored_->tree == nullptr && other.stored_->tree == nullptr;
  return packed ? stored_->packed == other.stored_->packed : **this == *other;
}

}  // namespace ringmaster::runtime
