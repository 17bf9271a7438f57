// SPDX-License-Identifier: Apache-2.0
// Messages on a stream socket: a type, a length, the bytes, and where it is wanted one descriptor.
#pragma once

#include "model/error.h"
#include "os/file_descriptor.h"
#include "spark/wire.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace berth::spark::wire {

struct Frame {
  Type type = Type::done;
  std::string bytes;
  os::FileDescriptor file;  // only where the receiver asked for one
};

// When to give up.
struct Patience {
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
  // Asked four times a second.
  std::function<bool()> over = [] { return false; };
};

// No message is longer.
inline constexpr std::size_t kMostFrameBytes = std::size_t{32} << 20;

// Errors: `gone` where the other side closed, `transient` where the patience is over, else `io`.
model::Result<void> send_frame(int socket, Type type, std::string_view bytes, const Patience& patience = {},
                               int file = -1);
// `most_bytes`: a longer message is `invalid_input`. Unless `with_file`, the kernel drops descriptors that
// are attached.
model::Result<Frame> receive_frame(int socket, std::size_t most_bytes, const Patience& patience = {},
                                   bool with_file = false);

}  // namespace berth::spark::wire
