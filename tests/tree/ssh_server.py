"""An SSH server with one user and one password; prints its port, serves until it is killed."""

import asyncio

import asyncssh


class Server(asyncssh.SSHServer):
    def password_auth_supported(self):
        return True

    def validate_password(self, username, password):
        return (username, password) == ("tester", "open sesame")


def welcome(process):
    process.stdout.write(f"welcome, {process.get_extra_info('username')}\n")
    process.exit(0)


async def serve():
    server = await asyncssh.create_server(
        Server,
        "127.0.0.1",
        0,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        process_factory=welcome,
    )
    print(server.get_port(), flush=True)
    await asyncio.Event().wait()


asyncio.run(serve())
