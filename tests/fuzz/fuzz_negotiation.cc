// What ranks send each other about operations: requests, responses, and what each of them holds.
#include <cstdint>

#include "collectives/engine/pieces.h"
#include "collectives/engine/recovery.h"
#include "collectives/engine/request.h"
#include "collectives/engine/response.h"
#include "collectives/engine/wire.h"

using namespace ringmaster::engine;  // NOLINT: nothing else is here

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  ByteReader requests(bytes), responses(bytes);
  for (int i = 0; i < 64 && requests.ok(); ++i) (void)CountsOfPieces(ReadRequest(&requests).pieces);
  for (int i = 0; i < 64 && responses.ok(); ++i) (void)ReadResponse(&responses);
  Holding holding;
  (void)ReadHolding(bytes, &holding);
  return 0;
}
