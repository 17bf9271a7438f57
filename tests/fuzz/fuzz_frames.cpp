// SPDX-License-Identifier: Apache-2.0
// Bytes on the socket of berth-sparkd: a message within the limit, or an error; never a wait, never more
// memory than the limit.
#include "spark/frames.h"
#include "tests/fuzz/property.h"

#include <array>
#include <chrono>

#include <sys/socket.h>
#include <unistd.h>

namespace {

constexpr std::size_t kMostBytes = 4096;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wire = berth::spark::wire;
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return 0;
  const berth::os::FileDescriptor reader(ends[0]);
  {
    const berth::os::FileDescriptor writer(ends[1]);
    fuzz::require(write(writer.get(), data, size) == static_cast<ssize_t>(size), "it fits the socket");
  }
  std::size_t taken = 0;
  while (true) {
    const auto frame = wire::receive_frame(reader.get(), kMostBytes, {}, false);
    if (!frame) break;
    fuzz::require(frame->bytes.size() <= kMostBytes, "a message keeps the limit");
    fuzz::require(!frame->file, "a descriptor that was not asked for is dropped");
    taken += frame->bytes.size() + 1;
    fuzz::require(taken <= size, "a message is of what was sent");
  }
  return 0;
}
