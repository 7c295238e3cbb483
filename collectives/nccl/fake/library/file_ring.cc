#include "collectives/nccl/fake/library/file_ring.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "collectives/nccl/connect_plan.h"

namespace ringmaster::nccl {
namespace {

namespace fs = std::filesystem;

// What is written of a call, before its input.
struct CallHead {
  CallKind kind;
  DataType type;
  RedOp op;
  int peer;
  double factor;
  uint64_t count, input_bytes;
};

// Writes the file as a whole: under its name there is all of it or nothing.
void WriteWhole(const fs::path& file, const std::string& text) {
  const fs::path unfinished = file.string() + ".new";
  std::ofstream(unfinished, std::ios::binary) << text;
  fs::rename(unfinished, file);
}

std::string Pack(const FakeCalls& calls) {
  std::string text;
  for (const FakeCall& call : calls) {
    const CallHead head = {call.kind,   call.type,  call.op,          call.peer,
                           call.factor, call.count, call.input.size()};
    text.append(reinterpret_cast<const char*>(&head), sizeof(head));
    text.append(reinterpret_cast<const char*>(call.input.data()), call.input.size());
  }
  return text;
}

std::shared_ptr<const FakeCalls> Unpack(const std::string& text) {
  auto calls = std::make_shared<FakeCalls>();
  for (size_t at = 0; at < text.size();) {
    CallHead head;
    std::memcpy(&head, text.data() + at, sizeof(head));
    at += sizeof(head);
    FakeCall call{head.kind, nullptr, nullptr,     head.count,
                  head.type, head.op, head.factor, head.peer};
    const auto* input = reinterpret_cast<const std::byte*>(text.data() + at);
    call.input.assign(input, input + head.input_bytes);
    at += head.input_bytes;
    calls->push_back(std::move(call));
  }
  return calls;
}

std::string FolderName(const std::string& key) {
  std::ostringstream name;
  name << std::hex << OriginOf(key);
  return name.str();
}

}  // namespace

FileRing::FileRing(const fs::path& folder, std::string key, int size)
    : FakeRing(key, size), folder_(folder / FolderName(key)) {
  fs::create_directories(folder_);
}

void FileRing::Arrive(int rank) { WriteWhole(folder_ / ("arrived." + std::to_string(rank)), key); }

int FileRing::arrived() {
  if (all_came_) return size;
  int came = 0;
  for (int rank = 0; rank < size; ++rank) {
    came += fs::exists(folder_ / ("arrived." + std::to_string(rank)));
  }
  all_came_ = came == size;
  return came;
}

fs::path FileRing::FileOf(uint64_t launch, int rank) const {
  return folder_ / (std::to_string(launch) + "." + std::to_string(rank));
}

// A rank that gives this launch has seen the launch before done. So all ranks had given that one,
// and had read what came before it, which can be removed.
void FileRing::Give(uint64_t launch, int rank, std::shared_ptr<const FakeCalls> calls) {
  WriteWhole(FileOf(launch, rank), Pack(*calls));
  if (launch >= 2) fs::remove(FileOf(launch - 2, rank));
}

bool FileRing::Given(uint64_t launch, FakeLists* all) {
  seen_.erase(seen_.begin(), seen_.lower_bound(launch));
  FakeLists& lists = seen_[launch];
  lists.resize(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    auto& list = lists[static_cast<size_t>(rank)];
    if (list != nullptr) continue;
    std::ifstream file(FileOf(launch, rank), std::ios::binary);
    if (!file) return false;
    std::ostringstream text;
    text << file.rdbuf();
    list = Unpack(text.str());
  }
  *all = lists;
  return true;
}

}  // namespace ringmaster::nccl
