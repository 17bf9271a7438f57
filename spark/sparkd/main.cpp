// SPDX-License-Identifier: Apache-2.0
// berth-sparkd(8): asks Spark's drivers for berthd. It reads what strangers write, so it runs without rights.
#include "spark/sparkd/serve.h"

#include <cstdio>
#include <exception>
#include <string_view>

#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

constexpr int kFailed = 1;
constexpr int kWrongUse = 2;

bool is_stream_socket(int fd) {
  int type = 0;
  socklen_t size = sizeof(type);
  return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

int wrong_use(const char* why) {
  fmt::print(stderr, "berth-sparkd: {}\n", why);
  return kWrongUse;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 2 && std::string_view(argv[1]) == "--version") {
      fmt::print("berth-sparkd {}\n", BERTH_VERSION);
      return 0;
    }
    if (argc == 2 && std::string_view(argv[1]) == "--help") {
      fmt::print(
          "Usage: berth-sparkd [--help | --version]\n\n"
          "Asks the drivers of this host's Spark applications for berthd, which it talks to on standard "
          "input.\n"
          "systemd starts it (berth-sparkd.socket).\n");
      return 0;
    }
    if (argc > 1) return wrong_use("it takes no arguments (berth-sparkd --help)");
    if (geteuid() == 0) {
      return wrong_use(
          "refuses to run as root, as it reads what strangers write; systemd starts it as a user without "
          "rights (berth-sparkd.socket)");
    }
    if (!is_stream_socket(STDIN_FILENO))
      return wrong_use("standard input is no socket; systemd starts it (berth-sparkd.socket)");
    const auto served = berth::spark::serve(STDIN_FILENO);
    if (served) return 0;
    fmt::print(stderr, "berth-sparkd: {}\n", served.error().message());
  } catch (const std::exception& error) {
    fmt::print(stderr, "berth-sparkd: {}\n", error.what());
  }
  return kFailed;
}
