#include "collectives/engine/response.h"

namespace ringmaster::engine {

void Write(ByteWriter* out, const Response& response) {
  out->Put(response.number);
  out->Put(static_cast<uint32_t>(response.requests.size()));
  for (const Request& request : response.requests) Write(out, request);
  out->Put(static_cast<uint32_t>(response.batches.size()));
  for (uint32_t batch : response.batches) out->Put(batch);
  out->Put(static_cast<uint32_t>(response.error));
  out->PutString(response.message);
  out->Put(static_cast<uint8_t>(response.armed));
  out->Put(static_cast<uint8_t>(response.direct));
}

Response ReadResponse(ByteReader* in) {
  Response response;
  response.number = in->Get<uint64_t>();
  const auto count = in->Get<uint32_t>();
  for (uint32_t i = 0; i < count && in->ok(); ++i) response.requests.push_back(ReadRequest(in));
  const auto batches = in->Get<uint32_t>();
  uint64_t batched = 0;
  for (uint32_t i = 0; i < batches && in->ok(); ++i) {
    response.batches.push_back(in->Get<uint32_t>());
    batched += response.batches.back();
  }
  if (batched > response.requests.size()) response.batches.clear();
  response.error = ReadStatusCode(in);
  response.message = in->GetString();
  response.armed = in->Get<uint8_t>() != 0;
  response.direct = in->Get<uint8_t>() != 0;
  return response;
}

}  // namespace ringmaster::engine
