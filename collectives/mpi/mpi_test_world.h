// For tests: ranks as threads, each with a communicator of the host and one of the fake MPI.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "collectives/communicator/test_world.h"
#include "collectives/mpi/fake_mpi.h"
#include "collectives/mpi/mpi_communicator.h"

namespace ringmaster::mpi {

class MpiTestWorld {
 public:
  explicit MpiTestWorld(int size, MpiLimits limits = {.collective = std::chrono::seconds(30)})
      : job(size), hosts(size, testing::Paths::kShm) {
    hosts.Build(1);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank)
      worlds.push_back(std::make_unique<MpiWorld>(job.At(rank), limits));
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        EXPECT_TRUE(at(rank).Begin(rank, static_cast<int>(worlds.size())).ok());
        EXPECT_TRUE(at(rank).Connect(MpiWorld::Clock::now() + std::chrono::seconds(30)).ok());
      });
    }
    for (auto& thread : threads) thread.join();
  }

  MpiWorld& at(int rank) { return *worlds[static_cast<size_t>(rank)]; }
  void Run(const std::function<void(int rank, Communicator& host, MpiCommunicator& mpi)>& body) {
    hosts.Run([&](int rank, Communicator& host) {
      MpiCommunicator mpi(&at(rank), &host);
      body(rank, host, mpi);
    });
  }

  FakeMpiJob job;
  testing::World hosts;
  std::vector<std::unique_ptr<MpiWorld>> worlds;
};

}  // namespace ringmaster::mpi
