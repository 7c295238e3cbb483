// Helpers for tests of the engine: they make requests and wait for the operations.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/engine/test_world.h"

namespace ringmaster::engine {

constexpr auto kLong = std::chrono::seconds(30);

// Asks for allreduces of ones as a group.
inline std::vector<std::shared_ptr<Operation>> AskGroup(TestWorker& w,
                                                        std::vector<std::string> names,
                                                        std::vector<std::vector<float>>* data,
                                                        int set = 0) {
  std::vector<std::shared_ptr<Operation>> group;
  for (size_t i = 0; i < names.size(); ++i) {
    Request request{names[i], Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", (*data)[i].size(), 1, 1};
    request.process_set = set;
    request.group = GroupOf(names, set);
    group.push_back(
        std::make_shared<Operation>(std::move(request), (*data)[i].data(), (*data)[i].data()));
  }
  const Status status = w.engine->Submit(std::span(group));
  for (const auto& operation : group) {
    if (!status.ok()) operation->Complete(status);
  }
  return group;
}

// Asks for a sum of these tensors as a prepared group. `out`: null: in place.
inline std::shared_ptr<Operation> AskPrepared(TestWorker& w, const std::string& name,
                                              std::vector<std::vector<double>>* in,
                                              std::vector<std::vector<double>>* out = nullptr,
                                              int set = 0) {
  Request request{name, Kind::kAllreduce, RM_FLOAT64, RM_SUM};
  request.process_set = set;
  const auto pieces = std::make_shared<Pieces>();
  for (size_t i = 0; i < in->size(); ++i) {
    std::vector<double>& from = (*in)[i];
    pieces->push_back({from.data(), out == nullptr ? from.data() : (*out)[i].data(), from.size()});
    request.count += from.size();
    request.pieces += "[" + std::to_string(from.size()) + "]";
  }
  const auto operation =
      std::make_shared<Operation>(std::move(request), pieces, Operation::OnDevice());
  if (Status s = w.engine->Submit(operation); !s.ok()) operation->Complete(s);
  return operation;
}

inline Status Await(const std::shared_ptr<Operation>& operation) {
  if (!operation->WaitUntil(Engine::Clock::now() + kLong)) {
    return {RM_ERR_TIMEOUT, "'" + operation->request.name + "' hangs"};
  }
  return operation->status();
}

inline std::vector<int32_t> Gathered(const Operation& operation) {
  const auto* data = reinterpret_cast<const int32_t*>(operation.gathered->data());
  return {data, data + operation.gathered_rows * 2};  // rows of two
}

inline int Join(TestWorker& w) {
  const auto operation = w.Ask({kJoinName, Kind::kJoin}, nullptr, nullptr);
  const Status status = Await(operation);
  EXPECT_TRUE(status.ok()) << status.message();
  return operation->last_joined;
}

inline int AddSet(TestWorker& w, const std::vector<int>& ranks) {
  Request request{kAddSetName, Kind::kAddSet};
  for (int rank : ranks) request.members.push_back(w.engine->info().WorkerAt(rank));
  const auto operation = w.Ask(std::move(request), nullptr, nullptr);
  const Status status = Await(operation);
  EXPECT_TRUE(status.ok()) << status.message();
  return operation->process_set;
}

inline Status RemoveSet(TestWorker& w, int set) {
  Request request{kRemoveSetName, Kind::kRemoveSet};
  request.removed_set = set;
  return Await(w.Ask(std::move(request), nullptr, nullptr));
}

inline std::shared_ptr<Operation> AskIn(TestWorker& w, int set, const std::string& name,
                                        std::vector<float>* data) {
  Request request{name, Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", data->size(), 1, 1};
  request.process_set = set;
  return w.Ask(std::move(request), data->data(), data->data());
}

// Rank `from` sends, `to` receives; `w` is one of them.
inline std::shared_ptr<Operation> AskTransfer(TestWorker& w, int from, int to,
                                              const std::string& name, std::vector<float>* data,
                                              rm_dtype dtype = RM_FLOAT32, int set = 0) {
  Request request{name, Kind::kTransfer, dtype, RM_SUM, TestWorld::NameOf(from), data->size()};
  request.members = {TestWorld::NameOf(from), TestWorld::NameOf(to)};
  request.process_set = set;
  const bool sends = w.id == from;
  return w.Ask(std::move(request), sends ? data->data() : nullptr, sends ? nullptr : data->data());
}

}  // namespace ringmaster::engine
