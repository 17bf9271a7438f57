// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "os/file_descriptor.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace berth::os {

// A file that one process at a time holds locked (flock(2)). The lock ends with the descriptor, and with the
// process at the latest. The text in the file names the holder, and stays when the lock ends.
struct LockFile {
  FileDescriptor fd;
  std::string before;  // the text of the last holder; empty where there was none
};

// Locks the file, and writes "PID TEXT" into it; makes it where it is missing, readable for root alone. Error
// refused where another process holds it: the message names the file, the process and what to do. `what` is
// locked, as in "undo journal".
//
// A thread that hangs in the kernel keeps the descriptor of a process that was killed. If the holder can run
// no instruction again (hangs_for_good()), another file takes the place of its file: the lock is taken over,
// and the journal says so. A system call that the holder is in may still come to its end. Otherwise the
// system's error, naming the file.
model::Result<LockFile> take_lock(const std::filesystem::path& file, std::string_view what,
                                  std::string_view text);

// Locks a file of the kernel, and writes nothing into it. Only root must be able to open it: a process that
// can open a file can lock it. Error refused where another process holds it, as take_lock() has it. The
// descriptor is invalid where there is no such file, and where a holder was killed and hangs for good:
// nothing can take the place of a file of the kernel.
model::Result<FileDescriptor> lock_in_place(const std::filesystem::path& file, std::string_view what);

// The second word of a lock file's text, which take_lock() was given.
std::string text_of_holder(std::string_view content);

}  // namespace berth::os
