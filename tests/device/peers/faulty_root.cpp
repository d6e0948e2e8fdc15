// rdma_read_mpi with a faulty server in the place of its own: faulty_root FAULT [options].
// The server is a process of its own (faulty_server), so that it can die while the rank lives.
#include "app/buffer_server.hpp"
#include "app/roles.hpp"
#include "app/star.hpp"

#include <boost/process.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

namespace rdma_read::test {
namespace {

namespace bp = boost::process;

class FaultyServer : public app::Server {
  public:
    FaultyServer(const app::ServerTask& task, const std::string& fault)
        : port_(app::choose_server_port(task.options)) {
        std::string run;
        for (const auto byte : task.run) {
            run += fmt::format("{:02x}", byte);
        }
        const auto program =
            std::filesystem::read_symlink("/proc/self/exe").parent_path() / "faulty_server";
        bp::ipstream told;
        child_ = bp::child(program.string(), "--fault", fault, "--address",
                           port_.address.to_string(), "--run", run, "--rank",
                           std::to_string(task.rank), "--ranks", std::to_string(task.ranks),
                           "--bytes", std::to_string(task.options.buffer_bytes()),
                           bp::std_in<stdin_, bp::std_out> told);
        verify::ServerInfo& info = announcement_.server;
        if (!(told >> info.address >> info.port)) {
            throw std::runtime_error("faulty_server did not start");
        }
        announcement_.usable = true;
        announcement_.run = task.run;
        announcement_.server_rank = task.rank;
        announcement_.buffer_bytes = task.options.buffer_bytes();
        info.rank = task.rank;
        info.host = task.host;
        info.device = port_.device;
        info.port_num = port_.port_num;
    }

    [[nodiscard]] verify::Announcement announcement() const override { return announcement_; }
    [[nodiscard]] verify::ServerInfo finish() override {
        stdin_.pipe().close();
        child_.wait();
        return announcement_.server;
    }

  private:
    rdma::DevicePort port_;
    bp::opstream stdin_;
    bp::child child_;
    verify::Announcement announcement_;
};

}  // namespace
}  // namespace rdma_read::test

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: faulty_root FAULT [rdma_read_mpi options]\n", stderr);
        return 2;
    }
    const std::string fault = argv[1];
    rdma_read::app::Roles roles = rdma_read::app::real_roles();
    roles.serve =
        [&](const rdma_read::app::ServerTask& task) -> std::unique_ptr<rdma_read::app::Server> {
        return std::make_unique<rdma_read::test::FaultyServer>(task, fault);
    };
    return rdma_read::app::rdma_read_mpi_main(argc - 1, argv + 1, roles);
}
