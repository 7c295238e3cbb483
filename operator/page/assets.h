// The files of the page, built in from operator/page/assets.
#pragma once

#include <cstddef>
#include <span>

namespace ringmaster::page {

struct Asset {
  const char* path;  // path in the URL
  const char* type;
  const char* text;
  std::size_t bytes;
};

extern const std::span<const Asset> kAssets;

}  // namespace ringmaster::page
