// SPDX-License-Identifier: Apache-2.0
#include "spark/endpoints.h"

#include "tests/unit/spark/fake_proc.h"
#include "tests/unit/spark/http_server.h"

#include <bit>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::spark {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EndpointsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::endian::native != std::endian::little)
      GTEST_SKIP() << "the tables here are of a little-endian host";
    proc.add(5, test::client_driver(), "a");
  }
  test::FakeProc proc;
};

TEST_F(EndpointsTest, AreThoseThatTheProcessListensAt) {
  proc.listen(5, 11, "0100007F:0FC8");
  proc.listen(5, 12, "00000000:0FC9");
  proc.listen(5, 13, "0500000A:0FCA");
  proc.listen(5, 14, "0100007F:0FCB", "01");  // connected
  EXPECT_THAT(listening_endpoints(proc.root(), 5).value(),
              ElementsAre("10.0.0.5:4042", "127.0.0.1:4040", "127.0.0.1:4041"));
}

TEST_F(EndpointsTest, AreNotThoseOfOthersInTheSameTable) {
  proc.listen(5, 11, "0100007F:0FC8");
  std::filesystem::remove(proc.root() / "5" / "fd" / "11");
  proc.link(5, "fd/3", "/dev/null");
  EXPECT_THAT(listening_endpoints(proc.root(), 5).value(), IsEmpty());
}

TEST_F(EndpointsTest, OfIpv6AreReadToo) {
  proc.listen(5, 11, "00000000000000000000000000000000:0FC8", "0A", "tcp6");
  proc.listen(5, 12, "0000000000000000FFFF00000100007F:0FC9", "0A", "tcp6");
  proc.listen(5, 13, "00000000000000000000000001000000:0FCA", "0A", "tcp6");
  EXPECT_THAT(listening_endpoints(proc.root(), 5).value(),
              ElementsAre("127.0.0.1:4040", "127.0.0.1:4041", "[::1]:4042"));
}

TEST_F(EndpointsTest, OfAnotherNetworkNamespaceAreNotThisHosts) {
  proc.listen(5, 11, "0100007F:0FC8");
  proc.link(5, "ns/net", "net:[2]");
  EXPECT_THAT(listening_endpoints(proc.root(), 5).value(), IsEmpty());
}

TEST_F(EndpointsTest, OfATableThatIsNoneAreNone) {
  proc.listen(5, 11, "0100007F");
  proc.listen(5, 12, "0100007Z:0FC8");
  proc.listen(5, 13, "0100007F:10FC8");
  proc.listen(5, 14, "0100007F:0000");
  EXPECT_THAT(listening_endpoints(proc.root(), 5).value(), IsEmpty());
  EXPECT_EQ(listening_endpoints(proc.root(), 6), std::nullopt);
  std::filesystem::remove_all(proc.root() / "5" / "fd");
  EXPECT_EQ(listening_endpoints(proc.root(), 5), std::nullopt);
}

// Of another user's process: its descriptors cannot be seen.
class UsualEndpointsTest : public EndpointsTest {
 protected:
  void SetUp() override {
    EndpointsTest::SetUp();
    std::filesystem::remove_all(proc.root() / "5" / "fd");
  }
  void add(int inode, const std::string& local, int user = 1000) const {
    proc.add_socket("5", inode, local, user);
    proc.add_socket("self", inode, local, user);
  }
};

TEST_F(UsualEndpointsTest, AreWhereTheDriversUserListensAtSparksPorts) {
  add(11, "0100007F:0FC8");
  add(12, "00000000:0FD8");
  add(13, "0100007F:0FC7");
  add(14, "0100007F:0FD9");
  add(15, "0100007F:1F90");
  EXPECT_THAT(usual_endpoints(proc.root(), 5), ElementsAre("127.0.0.1:4040", "127.0.0.1:4056"));
}

TEST_F(UsualEndpointsTest, AreNotThoseOfOtherUsers) {
  add(11, "0100007F:0FC8", 0);
  add(12, "0100007F:0FC9", 1001);
  EXPECT_THAT(usual_endpoints(proc.root(), 5), IsEmpty());
  proc.set_user(5, 1001);
  EXPECT_THAT(usual_endpoints(proc.root(), 5), ElementsAre("127.0.0.1:4041"));
}

TEST_F(UsualEndpointsTest, AreOfTheNetworkNamespaceThatTheDriverAndThisHostShare) {
  proc.add_socket("5", 11, "0100007F:0FC8", 1000);
  proc.add_socket("self", 12, "0100007F:0FC8", 1000);
  EXPECT_THAT(usual_endpoints(proc.root(), 5), IsEmpty()) << "the same address, but another socket";
}

TEST_F(UsualEndpointsTest, OfAProcessWhoseUserIsNotKnownAreNone) {
  add(11, "0100007F:0FC8");
  proc.write(5, "status", "Name:\tjava\nUid:\t1000\t1000\n");
  EXPECT_THAT(usual_endpoints(proc.root(), 5), IsEmpty());
  proc.write(5, "status", "Uid:\t1000\t1000\t1000\t-1\n");
  EXPECT_THAT(usual_endpoints(proc.root(), 5), IsEmpty());
  EXPECT_THAT(usual_endpoints(proc.root(), 6), IsEmpty());
}

TEST(Endpoints, OfThisProcessAreFoundInTheRealTable) {
  const test::HttpServer server([](const std::string&) { return test::answer("{}"); });
  EXPECT_THAT(listening_endpoints("/proc", getpid()).value(),
              Contains("127.0.0.1:" + std::to_string(server.port())));
}

class ListeningAmongTest : public EndpointsTest {
 protected:
  bool listens(const std::string& address, uid_t user = 1000) const {
    return listening_among(proc.root(), {address}).count({user, address}) > 0;
  }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((proc.root() / file).parent_path());
    std::ofstream(proc.root() / file) << text;
  }
};

TEST_F(ListeningAmongTest, IsAskedForAddressesOfThisHost) {
  proc.add_socket("self", 11, "00000000:1B58", 1000);  // 7000, at all
  proc.add_socket("self", 12, "0500000A:1B59", 1000);  // 7001, at 10.0.0.5
  EXPECT_TRUE(listens("127.0.0.1:7000"));
  EXPECT_TRUE(listens("localhost:7000"));
  EXPECT_FALSE(listens("127.0.0.1:7001")) << "not there";
  EXPECT_FALSE(listens("127.0.0.1:7002"));
  EXPECT_FALSE(listens("10.0.0.5:7001")) << "it is not known to be an address of this host";
  write("self/net/fib_trie",
        "Main:\n  +-- 10.0.0.0/24 2 0 2\n     |-- 10.0.0.5\n        /32 host LOCAL\n"
        "     |-- 10.0.0.6\n        /32 link UNICAST\n");
  EXPECT_TRUE(listens("10.0.0.5:7001"));
  EXPECT_TRUE(listens("10.0.0.5:7000"));
  EXPECT_FALSE(listens("10.0.0.6:7000"));
  EXPECT_FALSE(listens("10.0.0.5:7001", 1001)) << "of another user";
}

TEST_F(ListeningAmongTest, KnowsTheNamesOfThisHost) {
  proc.add_socket("self", 11, "0500000A:1B58", 1000);
  write("sys/kernel/hostname", "node-1\n");
  EXPECT_TRUE(listens("node-1:7000"));
  EXPECT_TRUE(listens("node-1.example.com:7000"));
  EXPECT_FALSE(listens("node-10:7000"));
  EXPECT_FALSE(listens("spark-a:7000"));
  write("self/root/etc/hosts", "127.0.1.1 spark-a # spark-b\n10.0.0.9 spark-c\n");
  EXPECT_TRUE(listens("spark-a:7000"));
  EXPECT_FALSE(listens("spark-b:7000"));
  EXPECT_FALSE(listens("spark-c:7000"));
}

TEST_F(ListeningAmongTest, OfIpv6IsKnownToo) {
  proc.add_socket("self", 11, "000080FE000000000000000001000000:1B58", 1000, "0A", "tcp6");
  EXPECT_FALSE(listens("[fe80::1]:7000"));
  write("self/net/if_inet6", "fe800000000000000000000000000001 02 40 20 80     eth0\n");
  EXPECT_TRUE(listens("[fe80::1]:7000"));
}

TEST_F(ListeningAmongTest, OfNoAddressIsNone) {
  proc.add_socket("self", 11, "00000000:1B58", 1000);
  for (const char* address : {"", ":", ":7000", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:72536"})
    EXPECT_FALSE(listens(address)) << address;
}

}  // namespace
}  // namespace berth::spark
