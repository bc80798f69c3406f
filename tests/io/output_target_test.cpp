#include "io/output_target.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "io/new_folder.hpp"
#include "io/posix_file.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/error_text.hpp"

namespace cermet::test {
namespace {

namespace fs = std::filesystem;

struct Output : testing::Test {
  ScratchFolder scratch;
  /// Names in the folder: what a failure may have left there.
  std::size_t count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(scratch.path()), fs::directory_iterator()));
  }
};

TEST_F(Output, GoesToWhereALinkLeads) {
  scratch.file("target", "old");
  fs::create_directory(scratch / "folder");
  fs::create_symlink("target", scratch / "link");
  fs::create_symlink(scratch / "link", scratch / "second");
  fs::create_symlink("folder/new", scratch / "dangling");
  for (const char* name : {"link", "second"}) {
    write_file_atomically(scratch / name, name);
    EXPECT_TRUE(fs::is_symlink(scratch / name));
    EXPECT_FALSE(fs::is_symlink(scratch / "target"));
    EXPECT_EQ(content_of(scratch / "target"), name);
  }
  write_file_atomically(scratch / "dangling", "made");
  EXPECT_TRUE(fs::is_symlink(scratch / "dangling"));
  EXPECT_EQ(content_of(scratch / "folder/new"), "made");
}

TEST_F(Output, IsNoFolderAndNoLinkToOne) {
  fs::create_directory(scratch / "folder");
  fs::create_symlink("folder", scratch / "link");
  fs::create_symlink("b", scratch / "a");
  fs::create_symlink("a", scratch / "b");
  for (const char* name : {"folder", "link"}) {
    EXPECT_EQ(error_text([&] { write_file_atomically(scratch / name, "x"); }),
              (scratch / name).string() + ": expected a file, found a folder");
    EXPECT_EQ(error_text([&] { require_writable(scratch / name); }),
              (scratch / name).string() + ": expected a file, found a folder");
  }
  EXPECT_EQ(error_text([&] { write_file_atomically(scratch / "a", "x"); }),
            (scratch / "a").string() + ": cannot be followed: Too many levels of symbolic links");
  EXPECT_EQ(error_text([&] { write_file_atomically(scratch.path() / "none/", "x"); }),
            scratch.path().string() + "/none/: expected a file's name, found one that ends in a slash");
  EXPECT_EQ(error_text([&] { write_file_atomically("", "x"); }), "output: expected a file's name, found an empty one");
  EXPECT_TRUE(fs::is_symlink(scratch / "link") && fs::is_directory(scratch / "link"));
  EXPECT_EQ(count(), 4u);
}

TEST_F(Output, APipeIsWrittenToAndStays) {
  ASSERT_EQ(mkfifo((scratch / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", scratch / "link");
  for (const char* name : {"pipe", "link"}) {
    std::string read;
    std::thread reader([&] { read = content_of(scratch / "pipe"); });
    write_file_atomically(scratch / name, std::string(200000, 'x'));
    reader.join();
    EXPECT_EQ(read, std::string(200000, 'x'));
    EXPECT_TRUE(fs::is_fifo(scratch / "pipe"));
  }
  EXPECT_EQ(count(), 2u);
}

/// As a link of /dev/fd leads to it: the file that is open, whatever its name is now.
TEST_F(Output, AnOpenFileIsWrittenToAndNotReplaced) {
  scratch.file("open", "");
  const int descriptor = ::open((scratch / "open").c_str(), O_RDWR);
  ASSERT_GE(descriptor, 0);
  write_file_atomically(fmt::format("/proc/self/fd/{}", descriptor), "through");
  char text[16] = {};
  EXPECT_EQ(pread(descriptor, text, sizeof text, 0), 7) << "the descriptor still reads the file that was written";
  EXPECT_STREQ(text, "through");
  EXPECT_EQ(content_of(scratch / "open"), "through");
  ::close(descriptor);
}

TEST_F(Output, KeepsThePermissionsOfWhatItReplaces) {
  scratch.file("script", "old");
  fs::permissions(scratch / "script", fs::perms::owner_all | fs::perms::group_read);
  write_file_atomically(scratch / "script", "new");
  EXPECT_EQ(fs::status(scratch / "script").permissions(), fs::perms::owner_all | fs::perms::group_read);
}

TEST_F(Output, ErrorsNameWhatTheUserNamed) {
  const fs::path missing = scratch / "none/page.html";
  EXPECT_EQ(error_text([&] { write_file_atomically(missing, "x"); }),
            missing.string() + ": cannot be created: No such file or directory");
  EXPECT_EQ(error_text([&] { require_writable(missing); }),
            missing.string() + ": cannot be created: No such file or directory");
  require_writable(scratch / "page.html");
  EXPECT_EQ(count(), 0u) << "asking leaves nothing";
  scratch.file("file", "");
  EXPECT_EQ(error_text([&] { make_folders(scratch / "file/folder"); }),
            (scratch / "file/folder").string() + ": cannot be created: Not a directory");
  EXPECT_EQ(error_text([&] { make_folders(scratch / "file"); }),
            (scratch / "file").string() + ": cannot be created: Not a directory");
  make_folders(scratch / "a/b");
  make_folders(scratch / "a/b");
  EXPECT_TRUE(fs::is_directory(scratch / "a/b"));
}

TEST_F(Output, AFolderThatALinkNamesIsReplacedBehindTheLink) {
  fs::create_directory(scratch / "empty");
  fs::create_symlink("empty", scratch / "link");
  fs::create_symlink("later", scratch / "dangling");
  for (const char* name : {"link", "dangling"}) {
    NewFolder folder(scratch / name);
    std::ofstream(folder.path() / "file") << "content";
    folder.commit();
    EXPECT_TRUE(fs::is_symlink(scratch / name)) << name;
    EXPECT_EQ(content_of(scratch / name / "file"), "content") << name;
  }
  EXPECT_NE(error_text([&] {
              NewFolder folder(scratch / "link");
            }).find("expected a new or empty folder, found one that holds something"),
            std::string::npos);
}

TEST_F(Output, AFolderMustBeOneThatCanBeReplaced) {
  EXPECT_EQ(error_text([] { require_new_or_empty(""); }), "output: expected a folder's name, found an empty one");
  require_new_or_empty(scratch / "new");
  fs::create_directory(scratch / "empty");
  require_new_or_empty(scratch / "empty");
}

}  // namespace
}  // namespace cermet::test
