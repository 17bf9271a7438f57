// SPDX-License-Identifier: Apache-2.0
// Reading of an open file up to a limit, and writing. Kernel files have no size that could be asked for
// first.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace berth::os {

// read(2), repeated while a signal interrupts it. The number of bytes, or -1 with errno.
ssize_t read_retrying(int fd, void* buffer, std::size_t size);

// Reads from the present position to the end, `most` bytes at most. False with errno where the file cannot be
// read; `text` then has the part before the fault.
bool read_up_to(int fd, std::size_t most, std::string& text);

// Writes all of the bytes. False with errno where the file does not take them.
bool write_all(int fd, std::string_view bytes);

}  // namespace berth::os
