#include "collectives/shared_library/shared_library.h"

#include <dlfcn.h>

namespace ringmaster {

Status SharedLibrary::Open(std::span<const char* const> names, SharedLibrary* out) {
  for (const int loaded_only : {RTLD_NOLOAD, 0}) {
    for (const char* name : names) {
      out->handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL | loaded_only);
      if (out->handle_ == nullptr) continue;
      out->name_ = name;
      return {};
    }
  }
  std::string tried;
  for (const char* name : names) tried += (tried.empty() ? "" : ", ") + std::string(name);
  const char* why = dlerror();
  return {RM_ERR_UNAVAILABLE,
          "none of " + tried + " can be loaded" + (why == nullptr ? "" : ": " + std::string(why))};
}

void* SharedLibrary::Find(const char* symbol) const { return dlsym(handle_, symbol); }

Status SharedLibrary::CheckResolved() const {
  if (missing_.empty()) return {};
  std::string all;
  for (const std::string& symbol : missing_) all += (all.empty() ? "" : ", ") + symbol;
  return {RM_ERR_UNAVAILABLE, name_ + " has no " + all};
}

}  // namespace ringmaster
