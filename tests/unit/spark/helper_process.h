// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "os/file_descriptor.h"
#include "tests/temporary_directory.h"

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace berth::spark::test {

// A socket as berth-sparkd's, with a thread in the place of berth-sparkd. `serve` gets each connection, one
// after the other, which ends when it returns.
class HelperProcess {
 public:
  explicit HelperProcess(std::function<void(int socket)> serve)
      : serve_(std::move(serve)), socket_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path().c_str(), sizeof(address.sun_path) - 1);
    if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        listen(socket_.get(), 4) != 0)
      throw std::runtime_error("cannot listen at " + path().string());
    thread_ = std::thread([this] { run(); });
  }
  ~HelperProcess() {
    over_ = true;
    shutdown(socket_.get(), SHUT_RDWR);  // ends accept()
    thread_.join();
  }
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;

  std::filesystem::path path() const { return directory_.path() / "socket"; }

 private:
  void run() {
    while (!over_) {
      const os::FileDescriptor connection(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (connection && !over_) serve_(connection.get());
    }
  }

  berth::test::TemporaryDirectory directory_;
  std::function<void(int)> serve_;
  os::FileDescriptor socket_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace berth::spark::test
