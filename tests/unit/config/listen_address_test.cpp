// SPDX-License-Identifier: Apache-2.0
#include "config/listen_address.h"

#include "config/config.h"

#include <string>

#include <gtest/gtest.h>

namespace berth::config {
namespace {

using Kind = ListenAddress::Kind;

ListenAddress parsed(const std::string& text) {
  const auto address = parse_listen_address(text);
  EXPECT_TRUE(address) << text << ": " << address.error().message();
  return address.value_or(ListenAddress{});
}

std::string refused(const std::string& text) {
  const auto address = parse_listen_address(text);
  EXPECT_FALSE(address) << text;
  return address ? "" : address.error().message();
}

TEST(ListenAddress, IsALoopbackAddressOrAPathOrNothing) {
  EXPECT_EQ(parsed("").kind, Kind::none);
  EXPECT_EQ(parsed("127.0.0.1:9100"), (ListenAddress{Kind::inet, "127.0.0.1", 9100, ""}));
  EXPECT_EQ(parsed("127.9.8.7:1"), (ListenAddress{Kind::inet, "127.9.8.7", 1, ""}));
  EXPECT_EQ(parsed("[::1]:65535"), (ListenAddress{Kind::inet6, "::1", 65535, ""}));
  EXPECT_EQ(parsed("/run/berth/m.sock"), (ListenAddress{Kind::unix_socket, "", 0, "/run/berth/m.sock"}));
  for (const char* text : {"", "127.0.0.1:9100", "[::1]:9100", "/run/berth/m.sock"}) {
    EXPECT_EQ(to_string(parsed(text)), text);
  }
}

TEST(ListenAddress, IsNothingThatOthersCanReach) {
  for (const char* text : {"0.0.0.0:9100", "10.0.0.1:9100", "126.255.255.255:1", "[::]:9100",
                           "[fe80::1]:9100", "[::ffff:127.0.0.1]:9100"}) {
    EXPECT_NE(refused(text).find("is not a loopback address"), std::string::npos) << text;
    EXPECT_EQ(parse_listen_address(text).error().kind(), model::ErrorKind::refused) << text;
  }
}

TEST(ListenAddress, IsNotGuessed) {
  for (const char* text :
       {"localhost:9100", ":9100", "9100", "127.0.0.1", "::1:9100", "[::1]", "[127.0.0.1]:9100", "127.1:9100",
        "run/berth.sock", "@abstract", "[:9100", "]:1", "[]:1", "127.0.0.1 :1"}) {
    EXPECT_NE(refused(text).find("is not \"127.0.0.1:PORT\""), std::string::npos) << refused(text);
  }
  for (const char* text : {"127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:9100x", "127.0.0.1:-1",
                           "127.0.0.1: 1", "127.0.0.1:99999999999999999999"}) {
    EXPECT_NE(refused(text).find("is not a port from 1 to 65535"), std::string::npos) << refused(text);
  }
}

TEST(ListenAddress, IsAPathThatASocketCanHave) {
  EXPECT_EQ(parsed("/" + std::string(106, 'a')).path.size(), 107U);
  EXPECT_NE(refused("/" + std::string(107, 'a')).find("at most 107 bytes"), std::string::npos);
  EXPECT_NE(refused("/run/berth/").find("cannot end in /"), std::string::npos);
  EXPECT_NE(refused("/run/\nx").find("control character"), std::string::npos);
}

TEST(ListenAddress, IsRefusedInAFileWithItsPlace) {
  const auto settings = parse("[metrics]\nlisten = \"0.0.0.0:9100\"\n", "b.toml");
  ASSERT_FALSE(settings);
  EXPECT_EQ(
      settings.error().message(),
      "b.toml:2:10: metrics.listen: 0.0.0.0 is not a loopback address; only 127.0.0.1 and ::1 are allowed");
  const auto number = parse("[metrics]\nlisten = 9100\n", "b.toml");
  ASSERT_FALSE(number);
  EXPECT_EQ(number.error().message(), "b.toml:2:10: metrics.listen wants a string, got 9100");
  const auto good = parse("[metrics]\nlisten = \"[::1]:9100\"\n", "b.toml");
  ASSERT_TRUE(good) << good.error().message();
  EXPECT_EQ(good->metrics_listen.kind, Kind::inet6);
}

}  // namespace
}  // namespace berth::config
