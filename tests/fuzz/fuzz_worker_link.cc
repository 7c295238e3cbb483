// Frames of the worker link, in pieces as a socket brings them. What was read can be sent again,
// and read as any frame of a worker or a sidecar.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "common/worker_link/frame.h"
#include "common/worker_link/worker_frames.h"

using ringmaster::worker_link::EncodeFrame;
using ringmaster::worker_link::FrameReader;

namespace {

namespace worker_link = ringmaster::worker_link;

// What a reader keeps it also writes as it has read it.
void ReadAsEach(const nlohmann::json& frame) {
  const nlohmann::json hello = ToFrame(worker_link::ReadWorkerHello(frame));
  if (ToFrame(worker_link::ReadWorkerHello(hello)) != hello) std::abort();
  const nlohmann::json welcome = ToFrame(worker_link::ReadWelcome(frame));
  if (ToFrame(worker_link::ReadWelcome(welcome)) != welcome) std::abort();
  const nlohmann::json trouble = ToFrame(worker_link::ReadViewTrouble(frame));
  if (ToFrame(worker_link::ReadViewTrouble(trouble)) != trouble) std::abort();
  worker_link::ReadRebuilt(frame);
  worker_link::TakesState(frame);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = data[0] % 16 + 1;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  FrameReader reader;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    reader.Feed(bytes.substr(at, piece));
    nlohmann::json frame;
    FrameReader::Result result;
    while ((result = reader.Next(&frame)) == FrameReader::Result::kFrame) {
      FrameReader again;
      again.Feed(EncodeFrame(frame));
      nlohmann::json same;
      if (again.Next(&same) != FrameReader::Result::kFrame) std::abort();
      ReadAsEach(frame);
    }
    if (result == FrameReader::Result::kError) return 0;
  }
  return 0;
}
