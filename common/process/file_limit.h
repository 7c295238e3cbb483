// How many files this process may have open. The programs that it starts keep the limit of its
// user: some count up to their limit, some use select(), which knows 1024 files.
//
// Thread rule: RaiseFileLimit once, before there are other threads.
#pragma once

namespace ringmaster::process {

// As far as the process may by itself.
void RaiseFileLimit();

// In a child between fork and exec: gives it the limit from before RaiseFileLimit.
void RestoreFileLimit();

}  // namespace ringmaster::process
