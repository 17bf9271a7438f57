// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "write_fixture.h"

#include <cstdlib>
#include <string>

namespace berth::cgroup {

// A message bus of the test's own, on a socket in a temporary directory.
class PrivateBus {
 public:
  PrivateBus();
  PrivateBus(const PrivateBus&) = delete;
  PrivateBus& operator=(const PrivateBus&) = delete;
  ~PrivateBus();
  // Empty where this machine has no dbus-daemon.
  const std::string& address() const { return address_; }

 private:
  ScratchDirectory directory_;
  std::string address_;
  int pid_ = -1;
};

// Makes `address` this process's system bus for as long as it lives.
class SystemBusAddress {
 public:
  explicit SystemBusAddress(const std::string& address) {
    setenv("DBUS_SYSTEM_BUS_ADDRESS", address.c_str(), 1);
  }
  SystemBusAddress(const SystemBusAddress&) = delete;
  SystemBusAddress& operator=(const SystemBusAddress&) = delete;
  ~SystemBusAddress() { unsetenv("DBUS_SYSTEM_BUS_ADDRESS"); }
};

}  // namespace berth::cgroup
