// SPDX-License-Identifier: Apache-2.0
// /proc/net/tcp and tcp6, of which strangers choose addresses, ports and number of lines. First byte: which
// file; the rest its text.
#include "spark/endpoints.h"
#include "tests/fuzz/property.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace {

using namespace berth;

// In memory: a process that holds one socket.
struct Place {
  std::filesystem::path root = "/dev/shm/berth-fuzz-sockets-" + std::to_string(getpid());
  Place() {
    for (const char* process : {"7", "self", "1"}) {
      std::filesystem::create_directories(root / process / "fd");
      std::filesystem::create_directories(root / process / "ns");
      std::filesystem::create_directories(root / process / "net");
      std::filesystem::create_symlink("socket:[4242]", root / process / "fd/3");
      std::filesystem::create_symlink("net:[1]", root / process / "ns/net");
      std::ofstream(root / process / "status") << "Uid:\t7\t7\t7\t7\n";
    }
    std::filesystem::create_directories(root / "net");
  }
  ~Place() {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const Place place;
  const char* file = data[0] % 2 == 0 ? "net/tcp" : "net/tcp6";
  for (const char* where : {"", "7", "self"}) {
    std::ofstream(place.root / where / file) << fuzz::text_of(data + 1, size - 1);
  }
  if (const auto found = spark::listening_endpoints(place.root, 7)) {
    for (const std::string& endpoint : *found) fuzz::require_line(endpoint);
  }
  for (const std::string& endpoint : spark::usual_endpoints(place.root, 7)) fuzz::require_line(endpoint);
  (void)spark::listening_among(place.root, {"127.0.0.1:4040", "[::1]:4040", "localhost:7077"});
  for (const char* where : {"", "7", "self"}) std::filesystem::remove(place.root / where / file);
  return 0;
}
