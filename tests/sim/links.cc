#include "tests/sim/links.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace ringmaster::app::sim {

std::uint64_t Links::Open(int index, const WorkerPtr& worker) {
  SimPod& pod = *parts_.pods[index];
  if (pod.agent == nullptr) return 0;
  Stream stream;
  stream.pod = index;
  stream.life = pod.life;
  stream.worker = worker;
  return parts_.pods.streams().Open(std::move(stream));
}

void Links::SendToSidecar(std::uint64_t id, json frame) {
  Stream* stream = parts_.pods.streams().Find(id);
  if (stream == nullptr || !stream->to_sidecar_open) return;
  stream->to_sidecar = std::max(stream->to_sidecar, parts_.time.now() + parts_.network.LinkDelay());
  const bool launcher = stream->worker == nullptr;
  auto sent = std::make_shared<const json>(std::move(frame));
  parts_.time.At(stream->to_sidecar, [this, id, launcher, sent = std::move(sent)] {
    const Stream* still = parts_.pods.streams().Find(id);
    if (still == nullptr) return;
    parts_.to_agent(still->pod, still->life, [id, launcher, sent](Agent& agent) {
      if ((*sent)["t"] == "hello") {
        agent.workers().OnHello(id, launcher, *sent, 0);
      } else {
        agent.workers().OnFrame(id, *sent);
      }
    });
  });
}

// All that the process has written is read before the end.
void Links::CloseByProcess(std::uint64_t id) {
  Stream* stream = parts_.pods.streams().Find(id);
  if (stream == nullptr || !std::exchange(stream->to_sidecar_open, false)) return;
  stream->to_process_open = false;
  const Micros at = std::max(stream->to_sidecar, parts_.time.now() + parts_.network.LinkDelay());
  parts_.time.At(at, [this, id] {
    const std::optional<Stream> closed = parts_.pods.streams().Close(id);
    if (!closed) return;
    parts_.to_agent(closed->pod, closed->life,
                    [id](Agent& agent) { agent.workers().OnClosed(id); });
  });
}

void Links::CloseAllOf(int pod) {
  for (const std::uint64_t id : parts_.pods.streams().OfPod(pod)) CloseBySidecar(id);
}

// What is under way in either direction is lost.
void Links::CloseBySidecar(std::uint64_t id) {
  const std::optional<Stream> closed = parts_.pods.streams().Close(id);
  if (!closed) return;
  parts_.to_agent(closed->pod, closed->life, [id](Agent& agent) { agent.workers().OnClosed(id); });
  if (!closed->to_process_open) return;
  parts_.time.After(
      parts_.network.LinkDelay(), [this, id, pod = closed->pod, worker = closed->worker] {
        if (worker == nullptr) return parts_.launcher_closed(pod, id);
        parts_.pods.ToWorker(worker, [this, id, worker] { parts_.worker_closed(worker, id); });
      });
}

void Links::SendToProcess(int index, std::uint64_t id, const json& frame) {
  Stream* stream = parts_.pods.streams().Find(id);
  if (stream == nullptr || !stream->to_process_open) return;
  stream->to_process = std::max(stream->to_process, parts_.time.now() + parts_.network.LinkDelay());
  const Epoch view = frame["t"] == "view" && frame["self"].get<int>() >= 0
                         ? frame["view"]["epoch"].get<Epoch>()
                         : 0;
  if (view != 0) stream->views.insert(view);
  parts_.time.At(stream->to_process,
                 [this, index, id, sent = std::make_shared<const json>(frame), view] {
                   const Stream* open = parts_.pods.streams().Find(id);
                   if (open == nullptr || !open->to_process_open) return;
                   const WorkerPtr worker = open->worker;
                   if (worker == nullptr) return parts_.launcher_frame(index, *sent);
                   parts_.pods.ToWorker(worker, [this, worker, id, sent, view] {
                     if (Stream* still = parts_.pods.streams().Find(id)) still->Arrived(view);
                     parts_.worker_frame(worker, id, *sent);
                   });
                 });
}

// Before the welcome the sidecar doesn't know who speaks: it waits.
void Links::SendFrom(const WorkerPtr& worker, json frame) {
  if (worker->stream == 0 || !worker->welcomed) return worker->queued.push_back(std::move(frame));
  SendToSidecar(worker->stream, std::move(frame));
}

}  // namespace ringmaster::app::sim
