#include "operator/kube/deflate.h"

#include <zlib.h>

#include <algorithm>
#include <new>

namespace ringmaster::kube {

std::string Deflate(std::string_view bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  const int done = compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                             reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 6);
  // CompressBound() bytes are enough, so only memory can be short.
  if (done != Z_OK) throw std::bad_alloc();
  out.resize(size);
  return out;
}

std::optional<std::string> Inflate(std::string_view bytes, std::size_t most) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  int state = Z_OK;
  while (state == Z_OK && out.size() <= most) {
    const std::size_t before = out.size();
    out.resize(before + std::clamp<std::size_t>(2 * before, 64 << 10, 4 << 20));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = static_cast<uInt>(out.size() - before);
    state = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
  }
  const bool whole = state == Z_STREAM_END && stream.avail_in == 0 && out.size() <= most;
  inflateEnd(&stream);
  if (!whole) return std::nullopt;
  return out;
}

}  // namespace ringmaster::kube
