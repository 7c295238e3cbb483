// What happens to the library in a process that was forked from a worker (for example by a
// DataLoader).
//
// The child has copies of the worker's sockets. While it lives, nobody sees them close when the
// worker dies, so it closes its copies at once. It has none of the library's threads, and locks may
// be held for ever in it. So the library must not be used there, and InChild() tells it so.
//
// Thread rule: any thread. What runs in the child between fork and exec is safe there.
#pragma once

namespace ringmaster::fork_guard {

// Own(): a forked child must not keep this descriptor. Disown(): it is about to be closed.
void Own(int fd);
void Disown(int fd);

// This process was forked from one that used the library.
bool InChild();

}  // namespace ringmaster::fork_guard
