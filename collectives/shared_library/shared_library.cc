#include "collectives/shared_library/shared_library.h"

#include <dlfcn.h>

namespace ringmaster {

Status SharedLibrary::Open(std::span<const char* const> names, SharedLibrary* out, Where where) {
  std::string why;
  const auto open = [&](const char* name, int how) {
    out->handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL | how);
    if (out->handle_ != nullptr) out->name_ = name;
    return out->handle_ != nullptr;
  };
  for (const char* name : names) {
    if (open(name, RTLD_NOLOAD)) return {};
  }
  for (const char* name : names) {
    if (where == Where::kLoaded) {
      why += (why.empty() ? "" : "; ") + std::string(name) + " is not loaded";
      continue;
    }
    if (open(name, 0)) return {};
    const char* said = dlerror();
    why += (why.empty() ? "" : "; ") + std::string(said == nullptr ? name : said);
  }
  return {RM_ERR_UNAVAILABLE, "none can be loaded: " + why};
}

void* SharedLibrary::Find(const char* symbol) const { return dlsym(handle_, symbol); }

Status SharedLibrary::CheckResolved() const {
  if (missing_.empty()) return {};
  std::string all;
  for (const std::string& symbol : missing_) all += (all.empty() ? "" : ", ") + symbol;
  return {RM_ERR_UNAVAILABLE, name_ + " has no " + all};
}

}  // namespace ringmaster
