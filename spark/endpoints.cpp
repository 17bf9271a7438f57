// SPDX-License-Identifier: Apache-2.0
#include "spark/endpoints.h"

#include "model/number.h"
#include "os/proc_files.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
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
// A process can have a million descriptors and sockets. A web server's are among the first.
constexpr std::size_t kMostDescriptors = 20'000;
constexpr std::size_t kMostLines = 500'000;
constexpr std::size_t kMostSockets = 1000;

// Inodes of the sockets of a process, from /proc/PID/fd: "socket:[INODE]".
std::optional<std::set<std::string>> socket_inodes(const std::filesystem::path& process) {
  std::set<std::string> inodes;
  std::error_code error;
  std::filesystem::directory_iterator entry(process / "fd", error);
  if (error) return std::nullopt;
  std::size_t seen = 0;
  for (; !error && ++seen <= kMostDescriptors && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    std::error_code unreadable;
    const std::string target = std::filesystem::read_symlink(entry->path(), unreadable).string();
    constexpr std::string_view kind = "socket:[";
    if (!unreadable && target.starts_with(kind) && target.ends_with("]"))
      inodes.insert(target.substr(kind.size(), target.size() - kind.size() - 1));
  }
  return inodes;
}

// The kernel prints an address by words of 32 bits, each as this host's number (net/ipv4/tcp_ipv4.c).
std::string host_of(std::string_view text) {
  if (text.size() != 8 && text.size() != 32) return "";
  std::array<unsigned char, 16> bytes{};
  for (std::size_t word = 0; word < text.size() / 8; ++word) {
    const auto value = model::to_number<std::uint32_t>(text.substr(word * 8, 8), 16);
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
  bool any = false;   // listens at all addresses
  std::string endpoint() const { return host + ":" + std::to_string(port); }
};

// Lines of /proc/PID/net/tcp (Documentation/networking/proc_net_tcp).
template <typename Accept>
void add_listening(const std::filesystem::path& table, Accept accept, std::vector<Listening>& found) {
  std::ifstream stream(table);
  std::string line;
  std::getline(stream, line);  // titles
  for (std::size_t lines = 0; lines < kMostLines && found.size() < kMostSockets; ++lines) {
    if (!std::getline(stream, line)) return;
    if (line.find(" 0A ") == std::string::npos) continue;  // it does not listen
    std::istringstream words(line);
    std::array<std::string, 10>
        fields;  // slot, local, remote, state, queues, timer, retransmits, uid, timeout, inode
    for (std::string& field : fields) words >> field;
    const std::string_view local = fields[1];
    const std::size_t colon = local.find(':');
    const bool listens = fields[3] == "0A";
    if (!words || !listens || colon == std::string::npos) continue;
    const auto port = model::to_number<std::uint16_t>(local.substr(colon + 1), 16);
    std::string host = host_of(local.substr(0, colon));
    if (!port || *port == 0 || host.empty()) continue;
    Listening socket{.host = std::move(host),
                     .port = *port,
                     .user = fields[7],
                     .inode = fields[9],
                     .any = local.substr(0, colon).find_first_not_of('0') == std::string_view::npos};
    if (accept(socket)) found.push_back(std::move(socket));
  }
}

// Sockets in the process's network namespace that `accept` takes.
template <typename Accept>
std::vector<Listening> listening_near(const std::filesystem::path& process, Accept accept) {
  std::vector<Listening> found;
  add_listening(process / "net" / "tcp", accept, found);
  add_listening(process / "net" / "tcp6", accept, found);
  return found;
}

std::vector<std::string> endpoints_of(const std::vector<Listening>& sockets) {
  std::set<std::string> endpoints;
  for (const Listening& socket : sockets) endpoints.insert(socket.endpoint());
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
  return endpoints_of(
      listening_near(process, [&](const Listening& socket) { return inodes->count(socket.inode) > 0; }));
}

std::vector<std::string> usual_endpoints(const std::filesystem::path& proc_root, pid_t pid) {
  const auto process = proc_root / std::to_string(pid);
  const auto uid = os::user_of(process);
  if (!uid) return {};
  const auto is_usual = [user = std::to_string(*uid)](const Listening& socket) {
    return socket.port >= kFirstPort && socket.port <= kLastPort && socket.user == user;
  };
  std::set<std::string> near_it;  // /proc/PID/ns/net would show the same, but not to every user
  for (const Listening& socket : listening_near(process, is_usual)) near_it.insert(socket.inode);
  return endpoints_of(listening_near(proc_root / "self", [&](const Listening& socket) {
    return is_usual(socket) && near_it.count(socket.inode) > 0;
  }));
}

namespace {

constexpr std::size_t kMostAddressBytes = std::size_t{1} << 20;

// The addresses of this host's interfaces, and their names in /etc/hosts.
std::set<std::string> local_hosts(const std::filesystem::path& proc_root) {
  std::set<std::string> hosts{"localhost", "127.0.0.1", "127.0.1.1", "[::1]"};
  // "|-- 10.0.0.5", then "/32 host LOCAL".
  std::istringstream trie(os::read_start(proc_root / "self" / "net" / "fib_trie", kMostAddressBytes));
  std::string address;
  for (std::string line; std::getline(trie, line);) {
    const std::size_t leaf = line.find("|-- ");
    if (leaf != std::string::npos) address = line.substr(leaf + 4);
    if (line.find("/32 host LOCAL") != std::string::npos) hosts.insert(address);
  }
  // 32 digits, then other words.
  std::istringstream table(os::read_start(proc_root / "self" / "net" / "if_inet6", kMostAddressBytes));
  for (std::string line; std::getline(table, line);) {
    std::array<unsigned char, 16> bytes{};
    bool good = line.size() > 32;
    for (std::size_t i = 0; good && i < bytes.size(); ++i) {
      const auto byte = model::to_number<unsigned char>(std::string_view(line).substr(2 * i, 2), 16);
      good = byte.has_value();
      bytes[i] = byte.value_or(0);
    }
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (good && inet_ntop(AF_INET6, bytes.data(), text.data(), text.size()) != nullptr)
      hosts.insert("[" + std::string(text.data()) + "]");
  }
  std::istringstream names(os::read_start(proc_root / "self" / "root" / "etc" / "hosts", kMostAddressBytes));
  for (std::string line; std::getline(names, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word;
    words >> word;
    if (hosts.count(word) == 0 && hosts.count("[" + word + "]") == 0) continue;
    while (words >> word) hosts.insert(word);
  }
  return hosts;
}

// Whether it is this host's name. One of the two may be without its domain.
bool is_hostname(const std::filesystem::path& proc_root, const std::string& host) {
  std::string own = os::read_start(proc_root / "sys" / "kernel" / "hostname", 256);
  own.resize(std::min(own.find('\n'), own.size()));
  return !own.empty() && (host == own || host.starts_with(own + ".") || own.starts_with(host + "."));
}

// Whether it is an address, and not a name.
bool is_literal(const std::string& host) {
  return host.empty() || host.starts_with("[") || host.find_first_not_of("0123456789.") == std::string::npos;
}

}  // namespace

std::set<UserAddress> listening_among(const std::filesystem::path& proc_root,
                                      const std::set<std::string>& wanted) {
  if (wanted.empty()) return {};
  const auto hosts = local_hosts(proc_root);
  std::map<std::uint16_t, std::vector<const std::string*>> by_port;  // those of this host
  for (const std::string& each : wanted) {
    const std::size_t colon = each.rfind(':');
    if (colon == std::string::npos) continue;
    const std::string host = each.substr(0, colon);
    if (hosts.count(host) == 0 && (is_literal(host) || !is_hostname(proc_root, host))) continue;
    const auto port = model::to_number<std::uint16_t>(each.substr(colon + 1));
    if (port) by_port[*port].push_back(&each);
  }
  std::set<UserAddress> found;
  if (by_port.empty()) return found;
  listening_near(proc_root / "self", [&](const Listening& socket) {
    const auto here = by_port.find(socket.port);
    const auto user = model::to_number<uid_t>(socket.user);
    if (here == by_port.end() || !user) return false;
    for (const std::string* each : here->second) {
      const std::string host = each->substr(0, each->rfind(':'));
      // A name may stand for any address of this host.
      if (socket.any || !is_literal(host) || host == socket.host) found.emplace(*user, *each);
    }
    return false;  // nothing else of it is needed
  });
  return found;
}

}  // namespace berth::spark
