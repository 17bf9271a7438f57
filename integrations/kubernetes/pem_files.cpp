// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/pem_files.h"

#include "model/error.h"
#include "os/file_descriptor.h"
#include "os/read_file.h"

#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

namespace berth::kubernetes {

namespace {

// The ends of lines "-----BEGIN TRUSTED CERTIFICATE-----" and "-----BEGIN EC PRIVATE KEY-----".
constexpr std::string_view kCertificate = "CERTIFICATE-----";
constexpr std::string_view kKey = "PRIVATE KEY-----";

std::string could_not(const char* attempt, const std::string& name) {
  return model::Error::from_errno(errno, fmt::format("cannot {} {}", attempt, name)).message();
}

std::optional<std::string> why_no_pem(const char* setting, const std::string& path, std::string_view wanted) {
  if (path.empty()) return std::nullopt;
  const std::string name = fmt::format("{} {}", setting, path);
  // A FIFO does not hold it up.
  const os::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0) return could_not("open", name);
  if (!S_ISREG(status.st_mode)) return name + " is no regular file";
  std::string text;
  if (!os::read_up_to(file.get(), kMaxPemBytes, text)) return could_not("read", name);
  if (text.empty()) return name + " is empty";
  if (text.find(wanted) != std::string::npos || text.size() == kMaxPemBytes) return std::nullopt;
  const bool key = wanted == kKey;
  const bool other = text.find(key ? kCertificate : kKey) != std::string::npos;
  if (!other) return fmt::format("{} has no {} in PEM", name, key ? "private key" : "certificate");
  return fmt::format("{} has a {} in place of a {}", name, key ? "certificate" : "private key",
                     key ? "private key" : "certificate");
}

}  // namespace

std::optional<std::string> why_no_pem_files(const Access& access) {
  if (!access.server.starts_with("https://")) return std::nullopt;
  if (auto why = why_no_pem("ca", access.ca, kCertificate)) return why;
  if (auto why = why_no_pem("certificate", access.certificate, kCertificate)) return why;
  return why_no_pem("key", access.key, kKey);
}

}  // namespace berth::kubernetes
