// SPDX-License-Identifier: Apache-2.0
#include "os/irqbalance.h"

#include "os/directory.h"
#include "os/file_descriptor.h"
#include "os/read_file.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace berth::os {

namespace {

using model::ErrorKind;

// An answer names banned interrupts, too.
constexpr std::size_t kMostAnswerBytes = std::size_t{256} << 10;
// An interval of irqbalance, and some more. Only the worker waits for so long.
constexpr int kSocketPatience_s = 15;

model::Error silent(const std::filesystem::path& path) {
  return {ErrorKind::transient, fmt::format("irqbalance does not answer at {}", path.string())};
}

bool is_transient(int errno_value) { return errno_value == EAGAIN || errno_value == EINPROGRESS; }

// Error gone where nobody listens, refused where another user does.
model::Result<FileDescriptor> connect_to(const std::filesystem::path& path) {
  const auto failed = [&path] { return model::fail(model::Error::from_errno(errno, path.string())); };
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return failed();
  const timeval patience{.tv_sec = kSocketPatience_s, .tv_usec = 0};
  for (const int limit : {SO_SNDTIMEO, SO_RCVTIMEO}) {
    if (setsockopt(socket.get(), SOL_SOCKET, limit, &patience, sizeof patience) != 0) return failed();
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& name = path.native();
  if (name.size() >= sizeof address.sun_path)
    return model::fail(ErrorKind::invalid_input, name + ": too long for a socket");
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  // The address family decides what the pointer points to: sockaddr(3type).
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == ECONNREFUSED || errno == ENOENT)
      return model::fail(ErrorKind::gone, fmt::format("no irqbalance listens at {}", name));
    return is_transient(errno) ? model::fail(silent(path)) : failed();
  }
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return failed();
  if (peer.uid != 0 && peer.uid != geteuid())
    return model::fail(ErrorKind::refused, fmt::format("{} is of user {}, and not of root", name, peer.uid));
  return socket;
}

// The kernel tells irqbalance the sender's user, since that asks for it (SO_PASSCRED, unix(7)).
model::Result<FileDescriptor> say(const std::filesystem::path& path, std::string_view words) {
  auto socket = connect_to(path);
  if (!socket) return socket;
  const ssize_t sent = send(socket->get(), words.data(), words.size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(words.size())) return socket;
  if (sent >= 0 || is_transient(errno)) return model::fail(silent(path));
  return model::fail(model::Error::from_errno(errno, path.string()));
}

// "SLEEP 10 IRQ 24 LOAD 5 DIFF 1 CLASS 0 BANNED 0000000c"; the IRQ parts are of banned interrupts.
model::Result<model::CpuSet> banned_of(std::string_view answer) {
  constexpr std::string_view kWord = "BANNED ";
  const auto at = answer.rfind(kWord);
  if (at == std::string_view::npos)
    return model::fail(ErrorKind::invalid_input, "irqbalance names no banned CPUs");
  auto banned = parse_mask(answer.substr(at + kWord.size()));
  if (!banned) return model::fail(banned.error().context("irqbalance's banned CPUs"));
  return banned;
}

model::Result<model::CpuSet> ask_at(const std::filesystem::path& path) {
  const auto socket = say(path, "setup");
  if (!socket) return model::fail(socket.error());
  std::string answer;
  if (!read_up_to(socket->get(), kMostAnswerBytes, answer)) {
    if (is_transient(errno)) return model::fail(silent(path));
    return model::fail(model::Error::from_errno(errno, path.string()));
  }
  return banned_of(answer);
}

// Names of the sockets of irqbalance, ascending; those of ended ones may be among them.
std::vector<std::string> sockets_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  FileDescriptor opened(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const DirectoryStream stream = opened ? stream_of(std::move(opened)) : nullptr;
  if (!stream) return names;
  while (const dirent* entry = readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name.starts_with("irqbalance") && name.ends_with(".sock")) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

model::Result<std::optional<Irqbalance::State>> ask_in(const std::filesystem::path& directory) {
  for (std::string& name : sockets_in(directory)) {
    const auto banned = ask_at(directory / name);
    if (banned) return Irqbalance::State{std::move(name), *banned};
    if (banned.error().kind() != ErrorKind::gone) return model::fail(banned.error());
  }
  return std::nullopt;
}

}  // namespace

model::Result<std::optional<Irqbalance::State>> Irqbalance::ask(std::chrono::milliseconds patience) {
  // Without a socket no thread is needed, as on most hosts.
  if (sockets_in(directory_).empty()) return std::nullopt;
  auto answer = worker_.run([directory = directory_] { return ask_in(directory); }, patience);
  return answer ? std::move(*answer) : model::fail(silent(directory_));
}

model::Result<void> Irqbalance::ban(const std::string& socket, const model::CpuSet& banned,
                                    std::chrono::milliseconds patience) {
  // An empty list makes irqbalance 1.9.2 crash.
  if (auto said = can_say(banned); !said) return said;
  // With the zero at the end, which irqbalance 1.6 needs.
  const std::string words =
      fmt::format("settings cpus {}{}", banned.empty() ? "NULL" : banned.to_string(), '\0');
  auto done = worker_.run(
      [path = directory_ / socket, words]() -> model::Result<void> {
        const auto said = say(path, words);
        if (!said) return model::fail(said.error());
        return {};
      },
      patience);
  return done ? std::move(*done) : model::fail(silent(directory_ / socket));
}

model::Result<void> Irqbalance::can_say(const model::CpuSet& banned) {
  const std::size_t size = banned.to_string().size();
  if (size <= kMostListBytes) return {};
  return model::fail(ErrorKind::invalid_input,
                     fmt::format("irqbalance takes a list of banned CPUs of at most {} characters, and this "
                                 "one has {}; restart irqbalance with its own ban, or let services own fewer "
                                 "separate vCPUs",
                                 kMostListBytes, size));
}

bool Irqbalance::has(const std::string& socket) const {
  const auto names = sockets_in(directory_);
  return std::binary_search(names.begin(), names.end(), socket);
}

model::Result<model::CpuSet> parse_mask(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ' || text.back() == '\0'))
    text.remove_suffix(1);
  const auto wrong = [&text] {
    return model::fail(ErrorKind::invalid_input,
                       fmt::format("\"{}\" is no mask of CPUs", text.substr(0, 64)));
  };
  if (text.empty()) return wrong();
  model::CpuSet cpus;
  int bit = 0;
  // The last digit has the lowest bits; each group before a comma has 32.
  int in_group = 0;
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit) {
    if (*digit == ',') {
      if (in_group != 32) return wrong();
      in_group = 0;
      continue;
    }
    const bool is_decimal = *digit >= '0' && *digit <= '9';
    if (!is_decimal && !(*digit >= 'a' && *digit <= 'f')) return wrong();
    const int value = is_decimal ? *digit - '0' : *digit - 'a' + 10;
    for (int i = 0; i < 4; ++i) {
      if ((value >> i & 1) == 0) continue;
      if (bit + i > model::kMaxCpu) return wrong();
      cpus.insert(bit + i);
    }
    bit += 4;
    in_group += 4;
  }
  return cpus;
}

}  // namespace berth::os
