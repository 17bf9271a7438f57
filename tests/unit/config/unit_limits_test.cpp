// SPDX-License-Identifier: Apache-2.0
#include "config/unit_limits.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::config {
namespace {

std::vector<std::string> forbidden(const std::string& toml) {
  const auto settings = parse(toml, "b.toml");
  EXPECT_TRUE(settings) << (settings ? "" : settings.error().message());
  return settings ? forbidden_by_unit(*settings) : std::vector<std::string>();
}

std::string of_listen(const std::string& address) {
  const auto list = forbidden("[metrics]\nlisten = \"" + address + "\"\n");
  EXPECT_LE(list.size(), 1U);
  return list.empty() ? "" : list[0];
}

std::string of_progress(const std::string& path) {
  const auto list = forbidden("[[workload]]\nmatch = \"a\"\nprogress = {file = \"" + path + "\"}\n");
  EXPECT_LE(list.size(), 1U);
  return list.empty() ? "" : list[0];
}

TEST(UnitLimits, SocketsArePossibleWhereTheUnitMayWrite) {
  for (const char* address :
       {"", "/run/berth/m.sock", "/var/lib/berth/m.sock", "127.0.0.1:9753", "[::1]:1024"})
    EXPECT_EQ(of_listen(address), "") << address;
  EXPECT_EQ(of_listen("/srv/m.sock"),
            "metrics.listen: \"/srv/m.sock\": berthd.service may not write there (ProtectSystem=); take a "
            "path below "
            "/run/berth");
  EXPECT_NE(of_listen("/tmp/m.sock").find("PrivateTmp="), std::string::npos);
  EXPECT_NE(of_listen("/home/m.sock").find("ProtectHome="), std::string::npos);
  EXPECT_NE(of_listen("/run/berth/../m.sock").find("ProtectSystem="), std::string::npos);
  EXPECT_NE(of_listen("/run/berthx/m.sock").find("ProtectSystem="), std::string::npos);
  EXPECT_NE(of_listen("127.0.0.1:1023").find("CapabilityBoundingSet="), std::string::npos);
}

TEST(UnitLimits, FilesOfProgressLieWhereTheUnitSees) {
  for (const char* path : {"/run/job/progress", "/var/lib/job/%n", "/srv/p", "/homes/p"})
    EXPECT_EQ(of_progress(path), "") << path;
  EXPECT_EQ(of_progress("/home/ann/p"),
            "b.toml:1: progress: \"/home/ann/p\": berthd.service sees nothing below /home (ProtectHome=); "
            "take a path "
            "below /run or /var/lib");
  for (const char* path : {"/root/p", "/run/user/1000/p", "/tmp/p", "/var/tmp/%i"})
    EXPECT_NE(of_progress(path), "") << path;
}

}  // namespace
}  // namespace berth::config
