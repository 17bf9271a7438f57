// SPDX-License-Identifier: Apache-2.0
#include "spark/endpoints.h"

#include "os/proc_files.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <arpa/inet.h>

namespace berth::spark {

namespace {

constexpr std::uint16_t kFirstPort = 4040;
constexpr std::uint16_t kLastPort = 4056;

// Inodes of the sockets of a process, from /proc/PID/fd: "socket:[INODE]".
std::optional<std::set<std::string>> socket_inodes(const std::filesystem::path& process) {
  std::set<std::string> inodes;
  std::error_code error;
  std::filesystem::directory_iterator entry(process / "fd", error);
  if (error) return std::nullopt;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::error_code unreadable;
    const std::string target = std::filesystem::read_symlink(entry->path(), unreadable).string();
    constexpr std::string_view kind = "socket:[";
    if (!unreadable && target.starts_with(kind) && target.ends_with("]"))
      inodes.insert(target.substr(kind.size(), target.size() - kind.size() - 1));
  }
  return inodes;
}

template <typename T>
std::optional<T> hexadecimal(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The kernel prints an address by words of 32 bits, each as this host's number (net/ipv4/tcp_ipv4.c).
std::string host_of(std::string_view text) {
  if (text.size() != 8 && text.size() != 32) return "";
  std::array<unsigned char, 16> bytes{};
  for (std::size_t word = 0; word < text.size() / 8; ++word) {
    const auto value = hexadecimal<std::uint32_t>(text.substr(word * 8, 8));
    if (!value) return "";
    std::memcpy(bytes.data() + word * 4, &*value, 4);
  }
  std::array<char, INET6_ADDRSTRLEN> name{};
  const auto is_ipv4 = [&](const void* address) {
    std::uint32_t any = 0;
    std::memcpy(&any, address, 4);
    if (any == 0) return std::string("127.0.0.1");
    return std::string(inet_ntop(AF_INET, address, name.data(), name.size()));
  };
  if (text.size() == 8) return is_ipv4(bytes.data());
  constexpr std::array<unsigned char, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (std::memcmp(bytes.data(), kMapped.data(), kMapped.size()) == 0) return is_ipv4(bytes.data() + 12);
  // A JVM that listens at :: accepts IPv4 too.
  if (bytes == std::array<unsigned char, 16>{}) return "127.0.0.1";
  return "[" + std::string(inet_ntop(AF_INET6, bytes.data(), name.data(), name.size())) + "]";
}

struct Listening {
  std::string host;
  std::uint16_t port = 0;
  std::string user;
  std::string inode;  // of the socket, the same in every network namespace's table
  std::string endpoint() const { return host + ":" + std::to_string(port); }
};

// Lines of /proc/PID/net/tcp (Documentation/networking/proc_net_tcp).
void add_listening(const std::filesystem::path& table, std::vector<Listening>& found) {
  std::ifstream stream(table);
  std::string line;
  std::getline(stream, line);  // titles
  while (std::getline(stream, line)) {
    std::istringstream words(line);
    std::array<std::string, 10>
        fields;  // slot, local, remote, state, queues, timer, retransmits, uid, timeout, inode
    for (std::string& field : fields) words >> field;
    const std::string_view local = fields[1];
    const std::size_t colon = local.find(':');
    const bool listens = fields[3] == "0A";
    if (!words || !listens || colon == std::string::npos) continue;
    const auto port = hexadecimal<std::uint16_t>(local.substr(colon + 1));
    std::string host = host_of(local.substr(0, colon));
    if (port && *port > 0 && !host.empty())
      found.push_back({.host = std::move(host), .port = *port, .user = fields[7], .inode = fields[9]});
  }
}

// Sockets in the process's network namespace.
std::vector<Listening> listening_near(const std::filesystem::path& process) {
  std::vector<Listening> found;
  add_listening(process / "net" / "tcp", found);
  add_listening(process / "net" / "tcp6", found);
  return found;
}

template <typename Accept>
std::vector<std::string> endpoints_among(const std::vector<Listening>& sockets, Accept accept) {
  std::set<std::string> endpoints;
  for (const Listening& socket : sockets)
    if (accept(socket)) endpoints.insert(socket.endpoint());
  return std::vector<std::string>(endpoints.begin(), endpoints.end());
}

}  // namespace

std::optional<std::vector<std::string>> listening_endpoints(const std::filesystem::path& proc_root,
                                                            pid_t pid) {
  const auto process = proc_root / std::to_string(pid);
  std::error_code error;
  const auto theirs = std::filesystem::read_symlink(process / "ns" / "net", error);
  if (error) return std::nullopt;
  const auto ours = std::filesystem::read_symlink(proc_root / "self" / "ns" / "net", error);
  if (error) return std::nullopt;
  if (theirs != ours) return std::vector<std::string>();
  const auto inodes = socket_inodes(process);
  if (!inodes) return std::nullopt;
  if (inodes->empty()) return std::vector<std::string>();
  return endpoints_among(listening_near(process),
                         [&](const Listening& socket) { return inodes->count(socket.inode) > 0; });
}

std::vector<std::string> usual_endpoints(const std::filesystem::path& proc_root, pid_t pid) {
  const auto process = proc_root / std::to_string(pid);
  const auto uid = os::user_of(process);
  if (!uid) return {};
  std::set<std::string> near_it;  // /proc/PID/ns/net would show the same, but not to every user
  for (const Listening& socket : listening_near(process)) near_it.insert(socket.inode);
  const std::string user = std::to_string(*uid);
  return endpoints_among(listening_near(proc_root / "self"), [&](const Listening& socket) {
    return socket.port >= kFirstPort && socket.port <= kLastPort && socket.user == user &&
           near_it.count(socket.inode) > 0;
  });
}

}  // namespace berth::spark
