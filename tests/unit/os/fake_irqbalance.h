// SPDX-License-Identifier: Apache-2.0
// The socket of an irqbalance, which answers as irqbalance 1.9 does (sock_handle() in irqbalance.c).
#pragma once

#include "model/cpu_set.h"
#include "os/file_descriptor.h"

#include <atomic>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace berth::test {

class FakeIrqbalance {
 public:
  // `own`: the banned CPUs of its own configuration.
  FakeIrqbalance(const std::filesystem::path& directory, int pid, model::CpuSet own = {})
      : path_(directory / fmt::format("irqbalance{}.sock", pid)), own_(std::move(own)), banned_(own_) {
    std::filesystem::create_directories(directory);
    listener_ = os::FileDescriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    const int on = 1;
    if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        setsockopt(listener_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
        listen(listener_.get(), 1) != 0)
      throw std::runtime_error("no socket " + path_.string());
    thread_ = std::thread([this] { serve(); });
  }
  FakeIrqbalance(const FakeIrqbalance&) = delete;
  FakeIrqbalance& operator=(const FakeIrqbalance&) = delete;
  ~FakeIrqbalance() {
    ends_ = true;
    thread_.join();
    std::filesystem::remove(path_);
  }

  std::string name() const { return path_.filename(); }
  // As it says that they are in force.
  model::CpuSet banned() {
    const std::lock_guard lock(mutex_);
    return banned_;
  }
  void set_banned(const model::CpuSet& cpus) {
    const std::lock_guard lock(mutex_);
    banned_ = cpus;
  }
  std::string last_words() {
    const std::lock_guard lock(mutex_);
    return last_words_;
  }
  // Whether these ended with a zero.
  bool ends_with_zero() {
    const std::lock_guard lock(mutex_);
    return ends_with_zero_;
  }
  // It takes orders, and does not follow them until it lags no more.
  void lag(bool lags) {
    const std::lock_guard lock(mutex_);
    lags_ = lags;
    if (!lags && !last_words_.empty()) follow();
  }
  // It answers nobody.
  void hang(bool hangs) { hangs_ = hangs; }

 private:
  void serve() {
    while (!ends_) {
      pollfd ready{.fd = listener_.get(), .events = POLLIN, .revents = 0};
      if (hangs_ || poll(&ready, 1, 10) <= 0) {
        if (hangs_) poll(nullptr, 0, 5);
        continue;
      }
      const os::FileDescriptor client(accept(listener_.get(), nullptr, nullptr));
      std::string text(1024, '\0');
      iovec part{text.data(), text.size()};
      alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      const ssize_t size = recvmsg(client.get(), &message, 0);
      const cmsghdr* header = CMSG_FIRSTHDR(&message);
      if (size <= 0 || header == nullptr || header->cmsg_type != SCM_CREDENTIALS) continue;
      text.resize(static_cast<std::size_t>(size));
      answer(client.get(), text);
    }
  }

  void answer(int client, const std::string& text) {
    const std::lock_guard lock(mutex_);
    constexpr std::string_view kCpus = "settings cpus ";
    if (text.starts_with("setup")) {
      std::uint64_t mask = 0;
      for (const int cpu : banned_) mask |= std::uint64_t{1} << cpu;
      const std::string said = fmt::format("SLEEP 10 IRQ 5 LOAD 0 DIFF 0 CLASS 0 BANNED {:08x},{:08x}",
                                           mask >> 32, mask & 0xffffffff);
      (void)send(client, said.data(), said.size(), MSG_NOSIGNAL);
    } else if (text.starts_with(kCpus)) {
      last_words_ = text.substr(kCpus.size());
      ends_with_zero_ = last_words_.ends_with('\0');
      if (ends_with_zero_) last_words_.pop_back();
      if (!lags_) follow();
    }
  }
  void follow() { banned_ = last_words_ == "NULL" ? own_ : *model::CpuSet::parse(last_words_); }

  std::filesystem::path path_;
  const model::CpuSet own_;
  std::mutex mutex_;
  model::CpuSet banned_;
  std::string last_words_;
  bool ends_with_zero_ = false;
  bool lags_ = false;
  std::atomic<bool> hangs_ = false;
  std::atomic<bool> ends_ = false;
  os::FileDescriptor listener_;
  std::thread thread_;
};

}  // namespace berth::test
