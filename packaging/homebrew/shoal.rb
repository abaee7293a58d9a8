# Formula for a tap. The url and checksum are filled in at a release; it builds from source, as taps without bottles do.
class Shoal < Formula
  desc "Durable, structured shell sessions for AI agents"
  homepage "https://github.com/shoal-shell/shoal"
  url "https://github.com/shoal-shell/shoal/archive/refs/tags/v0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license any_of: ["MIT", "Apache-2.0"]
  head "https://github.com/shoal-shell/shoal.git", branch: "main"

  depends_on "rust" => :build

  def install
    system "cargo", "build", "--release", "--locked", "--workspace", "--bins"
    bin.install %w[shoal shoal-kernel shoal-mcp].map { |name| "target/release/#{name}" }
    (libexec/"shoal").install %w[policy broker launcher worker ptyd].map { |name| "target/release/shoal-#{name}" }
    # The kernel looks for its roles in ../libexec/shoal from its own folder.
    %w[token history doctor].each { |name| bin.install_symlink "shoal" => "shoal-#{name}" }
    system bin/"shoal", "man", "--dir", "man1"
    man1.install Dir["man1/*.1"], "packaging/man/shoal-mcp.1"
    man8.install "packaging/man/shoal-kernel.8"
    generate_completions_from_executable(bin/"shoal", "completions")
    pkgshare.install "packaging/examples"
  end

  def caveats
    <<~TEXT
      The first call starts a kernel. As an agent of launchd (it survives the terminal it was started from):
        shoal setup service
      For an MCP client:
        shoal setup mcp claude
    TEXT
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/shoal --version")
    assert_equal "42", pipe_output("#{bin}/shoal eval --verdict", "6 * 7")[/"render":"(\d+)"/, 1]
  end
end
