// A mutex that clang checks: -Wthread-safety refuses a read or write of a GUARDED_BY field without
// its lock. Code that locks uses these classes, because clang can't check std::mutex.
//
//   Mutex mu_;
//   std::deque<Event> events_ GUARDED_BY(mu_);
//   ...
//   MutexLock lock(&mu_);
//   while (events_.empty()) changed_.Wait(&mu_);
//
// Header-only, and needs only the standard library, because the collectives library uses it too.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#if defined(__clang__)
#define RM_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define RM_THREAD_ANNOTATION(x)
#endif

// Some units include Abseil first, which defines these three to the same effect.
#ifndef GUARDED_BY
#define GUARDED_BY(x) RM_THREAD_ANNOTATION(guarded_by(x))
#define PT_GUARDED_BY(x) RM_THREAD_ANNOTATION(pt_guarded_by(x))
#endif
#ifndef NO_THREAD_SAFETY_ANALYSIS
#define NO_THREAD_SAFETY_ANALYSIS RM_THREAD_ANNOTATION(no_thread_safety_analysis)
#endif

#define CAPABILITY(x) RM_THREAD_ANNOTATION(capability(x))
#define SCOPED_CAPABILITY RM_THREAD_ANNOTATION(scoped_lockable)
#define REQUIRES(...) RM_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) RM_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) RM_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define RELEASE(...) RM_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define EXCLUDES(...) RM_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define ASSERT_CAPABILITY(x) RM_THREAD_ANNOTATION(assert_capability(x))

namespace ringmaster::sync {

class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ACQUIRE() { mu_.lock(); }
  void Unlock() RELEASE() { mu_.unlock(); }
  bool TryLock() TRY_ACQUIRE(true) { return mu_.try_lock(); }

 private:
  friend class CondVar;
  friend class StoppableCondVar;
  std::mutex mu_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex* mu) ACQUIRE(mu) : mu_(mu) { mu_->Lock(); }
  ~MutexLock() RELEASE() {
    if (held_) mu_->Unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  // Releases the lock before the end of the scope, for a call that must not run under it. Lock()
  // may take it again.
  void Unlock() RELEASE() {
    mu_->Unlock();
    held_ = false;
  }
  void Lock() ACQUIRE() {
    mu_->Lock();
    held_ = true;
  }

 private:
  Mutex* const mu_;
  bool held_ = true;
};

// Callers write the loop around the condition themselves: clang checks the locks in a loop, but not
// in a lambda that a wait is given.
class CondVar {
 public:
  void Wait(Mutex* mu) REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu->mu_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
  }
  // False: the deadline has come. The condition may be true nevertheless.
  template <class Clock, class Duration>
  [[nodiscard]] bool WaitUntil(Mutex* mu, const std::chrono::time_point<Clock, Duration>& deadline)
      REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu->mu_, std::adopt_lock);
    const std::cv_status status = changed_.wait_until(lock, deadline);
    lock.release();
    return status == std::cv_status::no_timeout;
  }
  template <class Rep, class Period>
  [[nodiscard]] bool WaitFor(Mutex* mu, const std::chrono::duration<Rep, Period>& most)
      REQUIRES(mu) {
    return WaitUntil(mu, std::chrono::steady_clock::now() + most);
  }
  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

// The same for a thread that may be asked to stop: both waits end when it is.
class StoppableCondVar {
 public:
  // The standard's waits with a stop token need a predicate. This one is true from its second call
  // on, so that a wait ends after one notification, as CondVar's does.
  void Wait(Mutex* mu, const std::stop_token& stop) REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu->mu_, std::adopt_lock);
    bool waited = false;
    changed_.wait(lock, stop, [&waited] { return std::exchange(waited, true); });
    lock.release();
  }
  // False: the deadline has come, or the thread was asked to stop.
  template <class Clock, class Duration>
  [[nodiscard]] bool WaitUntil(Mutex* mu, const std::stop_token& stop,
                               const std::chrono::time_point<Clock, Duration>& deadline)
      REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu->mu_, std::adopt_lock);
    bool waited = false;
    const bool notified = changed_.wait_until(lock, stop, deadline,
                                              [&waited] { return std::exchange(waited, true); });
    lock.release();
    return notified && !stop.stop_requested() && Clock::now() < deadline;
  }
  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::condition_variable_any changed_;
};

}  // namespace ringmaster::sync
