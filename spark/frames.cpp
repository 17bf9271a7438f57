// SPDX-License-Identifier: Apache-2.0
#include "spark/frames.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace berth::spark::wire {

namespace {

using model::ErrorKind;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLook{250};
// Of memory that is taken before the bytes for it have come.
constexpr std::size_t kStep = std::size_t{1} << 20;

struct Header {
  std::uint32_t length = 0;
  Type type = Type::done;
  std::array<std::uint8_t, 3> unused{};
};
static_assert(sizeof(Header) == 8);

model::Result<void> wait(int socket, short events, const Patience& patience) {
  for (;;) {
    const auto now = steady_clock::now();
    if (now >= patience.until || patience.over())
      return model::fail(ErrorKind::transient, "it took too long, or was given up");
    const auto left = patience.until - now;
    const auto step = left < kLook ? std::chrono::ceil<milliseconds>(left) : kLook;
    pollfd one{.fd = socket, .events = events, .revents = 0};
    const int ready = poll(&one, 1, static_cast<int>(step.count()));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return model::fail(model::Error::from_errno(errno, "poll"));
  }
}

// What to do after a call that returned `done` bytes: nullopt to go on with them, an empty result to try
// again.
model::Result<bool> went(ssize_t done, int socket, short events, const Patience& patience) {
  if (done > 0) return true;
  if (done == 0 || errno == EPIPE || errno == ECONNRESET)
    return model::fail(ErrorKind::gone, "the other side has closed the connection");
  if (errno == EINTR) return false;
  if (errno != EAGAIN) return model::fail(model::Error::from_errno(errno, "the connection"));
  if (auto waited = wait(socket, events, patience); !waited) return model::fail(waited.error());
  return false;
}

model::Result<void> send_all(int socket, std::string_view bytes, const Patience& patience, int file) {
  while (!bytes.empty()) {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (file >= 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &file, sizeof(int));
    }
    const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    const auto gone_on = went(sent, socket, POLLOUT, patience);
    if (!gone_on) return model::fail(gone_on.error());
    if (!*gone_on) continue;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
    file = -1;
  }
  return {};
}

// Takes one descriptor; closes any further ones.
void take_file(msghdr& message, os::FileDescriptor& file) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      file = os::FileDescriptor(fd);
    }
  }
}

model::Result<void> receive_all(int socket, char* into, std::size_t size, const Patience& patience,
                                os::FileDescriptor* file) {
  while (size > 0) {
    iovec part{into, size};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (file != nullptr) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
    }
    const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got > 0 && file != nullptr) take_file(message, *file);
    const auto gone_on = went(got, socket, POLLIN, patience);
    if (!gone_on) return model::fail(gone_on.error());
    if (!*gone_on) continue;
    into += got;
    size -= static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace

model::Result<void> send_frame(int socket, Type type, std::string_view bytes, const Patience& patience,
                               int file) {
  if (bytes.size() > kMostFrameBytes)
    return model::fail(ErrorKind::invalid_input, fmt::format("a message of {} bytes", bytes.size()));
  Header header;
  header.length = static_cast<std::uint32_t>(bytes.size());
  header.type = type;
  const std::string_view start(reinterpret_cast<const char*>(&header), sizeof(header));
  if (auto sent = send_all(socket, start, patience, file); !sent) return sent;
  return send_all(socket, bytes, patience, -1);
}

model::Result<Frame> receive_frame(int socket, std::size_t most_bytes, const Patience& patience,
                                   bool with_file) {
  Frame frame;
  os::FileDescriptor* file = with_file ? &frame.file : nullptr;
  Header header;
  auto got = receive_all(socket, reinterpret_cast<char*>(&header), sizeof(header), patience, file);
  if (!got) return model::fail(got.error());
  if (header.length > most_bytes)
    return model::fail(ErrorKind::invalid_input, fmt::format("a message of {} bytes", header.length));
  frame.type = header.type;
  for (std::size_t done = 0; done < header.length;) {
    const std::size_t step = std::min(header.length - done, kStep);
    frame.bytes.resize(done + step);
    got = receive_all(socket, frame.bytes.data() + done, step, patience, file);
    if (!got) return model::fail(got.error());
    done += step;
  }
  return frame;
}

}  // namespace berth::spark::wire
