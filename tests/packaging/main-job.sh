# The main job, as a newcomer does it: a first value, an agent's call, a session that is killed, the kernel stopped.
# Expects `user` and `as_user`.

main_job() {
    cd "/home/$user"
    same "a first value" "$(as_user shoal exec '6 * 7')" 42
    as_user sh -c 'head -c 20000 /dev/zero > big; echo small > small'
    same "a typed listing" "$(as_user shoal exec '(ls .).where(.size > 10kb).map(.name)')" big

    # An MCP client: initialize, then one call.
    answers=$(printf '%s\n' \
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
        '{"jsonrpc":"2.0","method":"notifications/initialized"}' \
        '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"shoal_exec","arguments":{"src":"1 + 1"}}}' |
        as_user shoal-mcp)
    holds "an agent's call" "$answers" '"render":"2"'

    holds "status" "$(as_user shoal status)" supervisor
    holds "a task" "$(as_user shoal exec --background 'sh { sleep 4242 }')" started
    until_true pgrep -u "$uid" -f 'sleep 4242'
    receipt=$(as_user shoal session kill default --reason "main job")
    holds "a kill" "$receipt" "survived: nothing"
    until_true gone 'sleep 4242'
    holds "a second kill" "$(as_user shoal session kill default; as_user shoal session kill nobody)" "nothing to end"
    same "the journal" "$(as_user shoal-history verify | grep -c '"ok": true')" 1
    same "the stop" "$(as_user shoal kernel stop)" stopped
    until_true gone shoal-
}
