// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/https_api.h"

#include "integrations/kubernetes/node.h"
#include "tests/temporary_directory.h"
#include "tests/unit/spark/http_server.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace berth::kubernetes {
namespace {

using spark::test::answer;
using spark::test::HttpServer;
using spark::test::Sent;
using ::testing::HasSubstr;
using ::testing::Not;

Access access_to(const HttpServer& server) {
  return {.server = server.url(""), .ca = {}, .token = {}, .certificate = {}, .key = {}};
}

TEST(KubernetesApi, SendsAMergePatch) {
  const HttpServer server([](const std::string& path) { return answer("at " + path); });
  HttpsApi api(access_to(server));
  const Answer got = api.patch("/api/v1/nodes/n1/status", R"({"a":1})");
  EXPECT_EQ(got.status, 200) << got.fault;
  EXPECT_EQ(got.body, "at /api/v1/nodes/n1/status");
  EXPECT_EQ(got.retry_after_s, std::nullopt);
  const std::string request = server.last_request();
  EXPECT_THAT(request, testing::StartsWith("PATCH /api/v1/nodes/n1/status HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nContent-Type: application/merge-patch+json\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\n\r\n{\"a\":1}"));
  EXPECT_THAT(request, Not(HasSubstr("Authorization")));
}

TEST(KubernetesApi, MakesAndListsObjectsOnOneConnection) {
  const HttpServer server([](const std::string& path) { return answer("at " + path); });
  HttpsApi api(access_to(server));
  EXPECT_EQ(api.create("/api/v1/namespaces/a/events", R"({"a":1})").body, "at /api/v1/namespaces/a/events");
  EXPECT_THAT(server.last_request(), testing::StartsWith("POST /api/v1/namespaces/a/events HTTP/1.1\r\n"));
  EXPECT_THAT(server.last_request(), HasSubstr("\r\nContent-Type: application/json\r\n"));
  EXPECT_THAT(server.last_request(), HasSubstr("\r\n\r\n{\"a\":1}"));
  EXPECT_EQ(api.list("/api/v1/pods?limit=1").body, "at /api/v1/pods?limit=1");
  EXPECT_THAT(server.last_request(), testing::StartsWith("GET /api/v1/pods?limit=1 HTTP/1.1\r\n"));
  EXPECT_THAT(server.last_request(), HasSubstr("as=PartialObjectMetadataList"));
  EXPECT_THAT(server.last_request(), Not(HasSubstr("Content-")));
  // The one before leaves nothing behind.
  EXPECT_EQ(api.patch("/api/v1/nodes/n1", "{}").status, 200);
  EXPECT_THAT(server.last_request(), testing::StartsWith("PATCH /api/v1/nodes/n1 HTTP/1.1\r\n"));
  EXPECT_THAT(server.last_request(), HasSubstr("\r\n\r\n{}"));
}

TEST(KubernetesApi, ReadsTheTokenAgainForEachRequest) {
  const test::TemporaryDirectory directory;
  const HttpServer server([](const std::string&) { return answer("{}"); });
  Access access = access_to(server);
  access.token = directory.write("token", "one\n").string();
  HttpsApi api(access);
  EXPECT_EQ(api.patch("/", "{}").status, 200);
  EXPECT_THAT(server.last_request(), HasSubstr("\r\nAuthorization: Bearer one\r\n"));
  directory.write("token", "two");
  EXPECT_EQ(api.patch("/", "{}").status, 200);
  EXPECT_THAT(server.last_request(), HasSubstr("\r\nAuthorization: Bearer two\r\n"));
}

TEST(KubernetesApi, SendsNoTokenThatIsNone) {
  const test::TemporaryDirectory directory;
  std::atomic<int> requests{0};
  const HttpServer server([&](const std::string&) {
    ++requests;
    return answer("{}");
  });
  Access access = access_to(server);
  access.token = (directory.path() / "token").string();
  HttpsApi api(access);
  EXPECT_EQ(api.patch("/", "{}").fault_kind, "token");
  for (const std::string& bad : {std::string(), std::string("\n"), std::string("a b"),
                                 std::string("a\r\nX: b"), std::string(kMaxTokenBytes + 1, 'a')}) {
    directory.write("token", bad);
    EXPECT_EQ(api.patch("/", "{}").fault_kind, "token") << bad.substr(0, 20);
  }
  directory.write("token", "\n");
  EXPECT_THAT(api.patch("/", "{}").fault, testing::EndsWith("/token is empty"));
  EXPECT_EQ(requests, 0);
}

TEST(KubernetesApi, HandsOnARefusalAndTheWishedPause) {
  const HttpServer server([](const std::string& path) {
    Sent sent = answer("slow down", "429 Too Many Requests");
    const std::string wish = path == "/long" ? "1000000" : "17";
    sent.bytes.insert(sent.bytes.find("\r\n") + 2, "Retry-After: " + wish + "\r\n");
    return sent;
  });
  HttpsApi api(access_to(server));
  const Answer got = api.patch("/", "{}");
  EXPECT_EQ(got.status, 429);
  EXPECT_EQ(got.body, "slow down");
  EXPECT_EQ(got.retry_after_s, 17);
  EXPECT_EQ(api.patch("/long", "{}").retry_after_s, 600);
}

TEST(KubernetesApi, FollowsNoRedirect) {
  const HttpServer server([](const std::string& path) {
    Sent sent = answer("", "302 Found");
    if (path == "/") sent.bytes.insert(sent.bytes.find("\r\n") + 2, "Location: /elsewhere\r\n");
    return sent;
  });
  HttpsApi api(access_to(server));
  EXPECT_EQ(api.patch("/", "{}").status, 302);
  EXPECT_THAT(server.last_request(), HasSubstr("PATCH / "));
}

TEST(KubernetesApi, KeepsNoAnswerThatIsTooLong) {
  const HttpServer server([](const std::string& path) {
    if (path == "/whole") return answer(std::string(kMaxAnswerBytes, ' '));
    if (path == "/longer") return answer(std::string(kMaxAnswerBytes + 1, ' '));
    return Sent{.bytes = path == "/endless" ? "HTTP/1.1 200 OK\r\n\r\n" + std::string(100'000, ' ')
                                            : "HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x'),
                .endless = true};
  });
  HttpsApi api(access_to(server));
  EXPECT_EQ(api.patch("/whole", "{}").body.size(), kMaxAnswerBytes);
  EXPECT_EQ(api.patch("/longer", "{}").fault_kind, "length");
  EXPECT_EQ(api.patch("/endless", "{}").fault_kind, "length");
  EXPECT_EQ(api.patch("/endless-header", "{}").status, 0);
  EXPECT_EQ(api.patch("/whole", "{}").body.size(), kMaxAnswerBytes) << "nothing of those is left";
}

TEST(KubernetesApi, EndsARequestThatHangs) {
  const HttpServer server(
      [](const std::string&) { return Sent{.bytes = "HTTP/1.1 200 OK\r\n", .hang = true}; });
  Access access = access_to(server);
  access.whole_limit = std::chrono::milliseconds(100);
  HttpsApi api(access);
  EXPECT_EQ(api.patch("/", "{}").fault_kind, "timeout");
  // A signal to stop ends it, too.
  access.whole_limit = std::chrono::hours(1);
  HttpsApi stopped(access, [] { return true; });
  EXPECT_EQ(stopped.patch("/", "{}").fault_kind, "connection");
}

TEST(KubernetesApi, MakesNoRequestAfterTheTimeForAll) {
  const HttpServer server([](const std::string& path) {
    return path == "/hang" ? Sent{.bytes = "HTTP/1.1 200 OK\r\n", .hang = true} : answer("{}");
  });
  HttpsApi api(access_to(server), [] { return true; });
  api.finish_within(std::chrono::milliseconds(300), std::chrono::hours(1));
  EXPECT_EQ(api.patch("/hang", "{}").fault_kind, "timeout");
  const Answer late = api.patch("/", "{}");
  EXPECT_EQ(late.fault_kind, "timeout");
  EXPECT_THAT(late.fault, HasSubstr("no time is left for this request"));
  EXPECT_THAT(server.last_request(), HasSubstr("PATCH /hang "));
}

TEST(KubernetesApi, TrustsNothingWhereTheAuthorityOfTheClusterIsMissing) {
  const HttpServer server([](const std::string&) { return answer("{}"); });
  Access access = access_to(server);
  access.server = fmt::format("https://127.0.0.1:{}", server.port());
  access.ca = "/nonexistent/ca.crt";
  HttpsApi api(access);
  EXPECT_THAT(api.patch("/", "{}").fault, HasSubstr("/nonexistent/ca.crt"));
}

TEST(KubernetesApi, SaysThatNobodyListens) {
  std::string url;
  {
    const HttpServer server([](const std::string&) { return answer(""); });
    url = server.url("");
  }
  HttpsApi api({.server = url, .ca = {}, .token = {}, .certificate = {}, .key = {}});
  const Answer got = api.patch("/x", "{}");
  EXPECT_EQ(got.fault_kind, "connect");
  EXPECT_THAT(got.fault, HasSubstr(url + "/x: "));
}

TEST(KubernetesApi, TrustsNoServerThatItDoesNotKnow) {
  const HttpServer server([](const std::string&) { return answer(""); });
  Access access{.server = "https" + server.url("").substr(4),
                .ca = "/nonexistent/ca.crt",
                .token = {},
                .certificate = {},
                .key = {}};
  HttpsApi api(access);
  EXPECT_EQ(api.patch("/", "{}").fault_kind, "certificates");
}

constexpr const char* kCertificate = "text\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
constexpr const char* kKey = "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n";

// A server that speaks no TLS, so that a request ends at the files.
class KubernetesFiles : public testing::Test {
 protected:
  std::string fault() {
    const Answer got = HttpsApi(access_).patch("/", "{}");
    EXPECT_EQ(got.fault_kind, "certificates") << got.fault;
    return got.fault;
  }
  std::string write(const std::string& name, const std::string& text) {
    return directory_.write(name, text).string();
  }

  const test::TemporaryDirectory directory_;
  const HttpServer server_{[](const std::string&) { return answer(""); }};
  Access access_{.server = "https" + server_.url("").substr(4),
                 .ca = write("ca.crt", kCertificate),
                 .token = {},
                 .certificate = write("n1.crt", kCertificate),
                 .key = write("n1.key", kKey)};
};

TEST_F(KubernetesFiles, AreNamedIfTheyAreMissingOrEmpty) {
  struct Case {
    const char* setting;
    std::string Access::*path;
  };
  for (const auto& [setting, path] :
       {Case{"ca", &Access::ca}, Case{"certificate", &Access::certificate}, Case{"key", &Access::key}}) {
    const std::string good = access_.*path;
    access_.*path = "/nonexistent/file";
    EXPECT_THAT(fault(), HasSubstr(fmt::format("cannot open {} /nonexistent/file: No such file", setting)));
    access_.*path = directory_.path().string();
    EXPECT_EQ(fault(), fmt::format("{} {} is no regular file", setting, directory_.path().string()));
    access_.*path = write("empty", "");
    EXPECT_EQ(fault(), fmt::format("{} {} is empty", setting, access_.*path));
    access_.*path = good;
  }
}

TEST_F(KubernetesFiles, AreNamedIfTheyAreOfAnotherKind) {
  const std::string certificate = access_.certificate;
  access_.ca = write("words", "words");
  EXPECT_EQ(fault(), "ca " + access_.ca + " has no certificate in PEM");
  access_.ca = access_.key;
  EXPECT_EQ(fault(), "ca " + access_.ca + " has a private key in place of a certificate");
  access_.ca = certificate;
  access_.key = certificate;
  EXPECT_EQ(fault(), "key " + access_.key + " has a certificate in place of a private key");
  access_.key = access_.certificate = write("both", std::string(kKey) + kCertificate);
  EXPECT_THAT(fault(), testing::StartsWith(fmt::format(
                           "certificate {0} and key {0} cannot be used together: ", access_.key)));
  access_.key = access_.certificate = "";
  EXPECT_EQ(fault(), "ca " + access_.ca +
                         " has no certificate that can be read; copy the authority of the cluster again");
}

TEST_F(KubernetesFiles, AFifoHoldsNothingUp) {
  access_.ca = (directory_.path() / "fifo").string();
  ASSERT_EQ(mkfifo(access_.ca.c_str(), 0600), 0);
  EXPECT_EQ(fault(), "ca " + access_.ca + " is no regular file");
}

TEST_F(KubernetesFiles, AreNotNeededWithoutTls) {
  access_ = access_to(server_);
  access_.ca = "/nonexistent/ca.crt";
  EXPECT_EQ(HttpsApi(access_).patch("/", "{}").status, 200);
}

}  // namespace
}  // namespace berth::kubernetes
