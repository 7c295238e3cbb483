// A shared library that is looked for at run time.
//
// Thread rule: constant after Open(). Never closed: what was loaded may have threads of its own.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ringmaster/status.h"

namespace ringmaster {

class SharedLibrary {
 public:
  enum class Where { kLoadedOrFound, kLoaded };

  // Opens the first of `names` that this process has loaded already (so that a framework and we
  // share one), else, with kLoadedOrFound, the first that the dynamic linker finds.
  // RM_ERR_UNAVAILABLE: none can be opened, and why each can't.
  static Status Open(std::span<const char* const> names, SharedLibrary* out,
                     Where where = Where::kLoadedOrFound);

  // The address of the symbol; null if the library has none of this name.
  void* Find(const char* symbol) const;
  // Finds a function that must be there. If it isn't, CheckResolved() names it.
  template <typename Function>
  void Resolve(const char* symbol, Function** out) {
    *out = reinterpret_cast<Function*>(Find(symbol));
    if (*out == nullptr) missing_.emplace_back(symbol);
  }
  // RM_ERR_UNAVAILABLE names the functions that Resolve() has not found.
  Status CheckResolved() const;

  const std::string& name() const { return name_; }

 private:
  void* handle_ = nullptr;
  std::string name_;
  std::vector<std::string> missing_;
};

}  // namespace ringmaster
