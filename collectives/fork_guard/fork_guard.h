// What becomes of the library in a process that was forked from a worker (a DataLoader's, say).
//
// The child has copies of the worker's sockets, and as long as it lives nobody sees them close when
// the worker dies: so it closes them at once. It has none of the library's threads, and locks may
// be held for ever in it: so the library must not be used there, and can tell.
//
// Thread rule: any thread; what runs in the child between fork and exec is safe there.
#pragma once

namespace ringmaster::fork_guard {

// A descriptor that a forked child must not keep, and one that is about to be closed.
void Own(int fd);
void Disown(int fd);

// This process was forked from one that used the library.
bool InChild();

}  // namespace ringmaster::fork_guard
