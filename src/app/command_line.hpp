// A command line of named options: splits it, and ends it in one line when it is wrong.
#pragma once

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace rdma_read::app {

/// A command line that is answered at once: a usage error, --help or --version.
struct EarlyExit {
    int code = 0;            ///< The exit code of the program.
    std::string text;        ///< What to print, with its newline.
    bool to_stderr = false;  ///< Where to print it.
};

/// Exit code of a wrong command line.
inline constexpr int kExitUsage = 2;

/// A wrong command line. what() is one line without newline: option, value, what is allowed.
class UsageError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;

    /// `--size 4X: not a size; allowed: …`. The value is quoted if it would not print as it is.
    UsageError(std::string_view option, std::string_view value, std::string_view problem,
               std::string_view allowed);
};

/// One option. An option without a value name is a flag.
struct OptionSpec {
    std::string name;        ///< As typed: "--size" or "-s".
    std::string value_name;  ///< For the help: "LIST".
    std::string allowed;     ///< What a value may be, for errors: "bytes from 1 to 2^40".
    std::string help;        ///< Meaning, unit and default.
};

/// What a program accepts. --help and --version are added to the options.
struct CommandLineSpec {
    std::string program;
    std::string usage;  ///< How it is started, less the options.
    std::string description;
    std::vector<OptionSpec> options;
    std::string footer;  ///< After the options in the help.
};

/// A command line split into options and values; the values are not interpreted yet.
class CommandLine {
  public:
    /// \throws UsageError for an unknown option, a stray word, an option without its value and an
    ///         option given twice
    CommandLine(const CommandLineSpec& spec, int argc, const char* const* argv);

    [[nodiscard]] bool has(const std::string& name) const { return values_.contains(name); }
    /// The value of an option, or nullptr if it was not given.
    [[nodiscard]] const std::string* value(const std::string& name) const;
    /// --help and --version, if asked for: --help first.
    [[nodiscard]] const std::optional<EarlyExit>& early_exit() const { return early_exit_; }

  private:
    std::map<std::string, std::string> values_;
    std::optional<EarlyExit> early_exit_;
};

/// The value as it can be shown in one line: control characters, quotes and what is not UTF-8-safe
/// ASCII are escaped, long text is cut.
std::string printable(std::string_view value);

}  // namespace rdma_read::app
