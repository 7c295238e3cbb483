// Runs one response: reads the callers' inputs, reduces into a buffer of its own, and gives the
// result out.
//
// The two halves are apart because the result is retained between them: a survivor that has not
// executed an operation gets the buffer from one that has, and only publishes it. Thread rule: the
// engine's thread only.
#pragma once

#include "collectives/engine/pending_table.h"
#include "collectives/engine/response.h"
#include "ringmaster/communicator.h"

namespace ringmaster::engine {

// Inputs are left intact. On failure (kEpochMoved) nothing has happened that a caller could see.
Status Execute(Communicator* communicator, const Response& response, const PendingTable& pending,
               BufferPool* pool, Retained* result);

// Copies the result to the callers' buffers and completes their operations, but for step ends,
// which the engine completes itself. False: an operation of the response is not pending here.
bool Publish(const Retained& result, PendingTable* pending);

}  // namespace ringmaster::engine
