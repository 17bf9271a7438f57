// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/https_api.h"

#include "integrations/kubernetes/node.h"
#include "tests/temporary_directory.h"
#include "tests/unit/spark/http_server.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace berth::kubernetes
