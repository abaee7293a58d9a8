//! The official Rust SDK, in each way it opens a connection. It is the strictest client about listen streams: a URI has
//! to come back byte for byte, and nothing may come before the acknowledgement.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ContentBlock, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability,
    Implementation, ProtocolVersion, ReadResourceRequestParams, ServerNotification, SubscriptionFilter,
};
use rmcp::service::{RequestContext, RunningService, ServiceError, SubscriptionEnd};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use serde_json::{Value, json};
use shoal_harness::{Kernel, Place, patience, processes};
use tokio::process::{Child, Command};

use crate::approval::asking;

const WATCHED: &str = "shoal://events/journal?limit=5";

/// A client whose person says yes to every form, and what they were shown.
#[derive(Clone, Default)]
struct Person {
    shown: Arc<Mutex<Vec<String>>>,
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let forms = ElicitationCapability::new().with_form(FormElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(forms);
        let mut config = ClientConfig::new(capabilities, Implementation::new("rust", "1"));
        config.protocol_version = ProtocolVersion::V_2025_11_25;
        config
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        self.shown.lock().expect("nobody panicked").push(message);
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "ok": true })))
    }
}

/// A client, the server it talks to, and the person behind it.
struct Talk {
    client: RunningService<RoleClient, Person>,
    server: Child,
    person: Person,
}

impl Talk {
    async fn open(place: &Place, kernel: Option<&Kernel>, lifecycle: ClientLifecycleMode) -> Talk {
        let mut command = Command::from(place.shoal("shoal-mcp"));
        if let Some(kernel) = kernel {
            command.arg("--socket").arg(kernel.socket());
        }
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("shoal-mcp starts");
        let pipes = (server.stdout.take().expect("piped"), server.stdin.take().expect("piped"));
        let person = Person::default();
        let opened = person.clone().serve_with_lifecycle(pipes, lifecycle).await;
        Talk { client: opened.expect("the server is understood"), server, person }
    }

    fn version(&self) -> String {
        self.client.peer_info().expect("the server told about itself").protocol_version.to_string()
    }

    async fn tool(&self, name: &'static str, arguments: Value) -> Result<CallToolResult, ServiceError> {
        let arguments = arguments.as_object().cloned().expect("an object");
        self.client.call_tool(CallToolRequestParams::new(name).with_arguments(arguments)).await
    }

    /// Ends the client; the server follows by itself.
    async fn close(mut self) {
        self.client.cancel().await.expect("the client ends");
        let ended = tokio::time::timeout(patience(), self.server.wait()).await.expect("stdin has ended, so it ends");
        assert!(ended.as_ref().is_ok_and(std::process::ExitStatus::success), "{ended:?}");
    }
}

fn discover() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

fn auto() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::V_2026_07_28], legacy_version: None }
}

/// Runs `test` on a runtime of its own.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(test);
}

fn refused_as(code: ErrorCode, outcome: Result<impl std::fmt::Debug, ServiceError>) {
    match outcome {
        Err(ServiceError::McpError(error)) => assert_eq!(error.code, code, "{error:?}"),
        other => panic!("{other:?}"),
    }
}

/// What holds however the connection was opened.
async fn is_served(talk: &Talk, missing: ErrorCode) {
    let tools = talk.client.list_all_tools().await.expect("tools/list");
    assert_eq!(tools.len(), 13, "{tools:?}");
    let roots = talk.client.list_all_resources().await.expect("resources/list");
    assert_eq!(roots[0].uri, "shoal://journal", "{roots:?}");
    assert_eq!(talk.client.list_all_resource_templates().await.expect("templates").len(), 12);

    let result = talk.tool("shoal_exec", json!({ "src": "6 * 7" })).await.expect("a result");
    let structured = result.structured_content.expect("the structured half");
    assert_eq!(structured["summary"]["status"], "ok", "{structured}");
    assert!(matches!(result.content.first(), Some(ContentBlock::Text(text)) if text.text == "42"));
    let uri = structured["uri"].as_str().expect("an address").to_owned();
    assert!(matches!(&result.content[1], ContentBlock::ResourceLink(link) if link.uri == uri), "{:?}", result.content);
    talk.client.read_resource(ReadResourceRequestParams::new(uri)).await.expect("the value is read");

    let raised = talk.tool("shoal_exec", json!({ "src": "1/0" })).await.expect("an error is a result");
    assert_eq!(
        (raised.is_error, &raised.structured_content.expect("both halves")["code"]),
        (Some(true), &json!(-32002))
    );
    let mistaken = talk.tool("shoal_exec", json!({})).await.expect("a wrong argument is a result");
    assert_eq!(mistaken.is_error, Some(true), "{mistaken:?}");
    refused_as(ErrorCode::INVALID_PARAMS, talk.tool("nope", json!({})).await);
    let nothing = ReadResourceRequestParams::new("shoal://nope/1");
    refused_as(missing, talk.client.read_resource(nothing).await);
    let listed = talk.tool("shoal_pty_list", json!({})).await.expect("a result");
    assert_eq!(listed.structured_content.expect("an object")["ptys"], json!([]));
}

#[test]
fn by_the_older_handshake() {
    let place = Place::new();
    run(async {
        let talk = Talk::open(&place, None, ClientLifecycleMode::Initialize).await;
        assert_eq!(talk.version(), "2025-11-25");
        is_served(&talk, ErrorCode::INVALID_PARAMS).await;
        talk.close().await;
    });
    processes::end_kernels_of(&place);
}

#[test]
fn by_discovery_with_a_listen_stream() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    run(async {
        for lifecycle in [discover(), auto()] {
            let talk = Talk::open(&place, Some(&kernel), lifecycle).await;
            assert_eq!(talk.version(), "2026-07-28");
            is_served(&talk, ErrorCode::INVALID_PARAMS).await;
            listens(&talk).await;
            talk.close().await;
        }
    });
}

async fn listens(talk: &Talk) {
    let wanted = SubscriptionFilter::builder().resource_subscriptions([WATCHED, "shoal://out/1"]).build();
    let mut stream = talk.client.listen(wanted.clone()).await.expect("acknowledged");
    assert_eq!(stream.acknowledged().resource_subscriptions, Some(vec![WATCHED.to_owned()]));
    talk.tool("shoal_exec", json!({ "src": "1" })).await.expect("a result");
    let update = tokio::time::timeout(patience(), stream.next()).await.expect("an update comes");
    match update.expect("a valid one").expect("before the end") {
        ServerNotification::ResourceUpdatedNotification(updated) => assert_eq!(updated.params.uri, WATCHED),
        other => panic!("{other:?}"),
    }
    stream.cancel().await.expect("cancelled");
    assert_eq!(stream.end(), Some(&SubscriptionEnd::Cancelled));
    // The connection is as good as before.
    let mut again = talk.client.listen(wanted).await.expect("acknowledged");
    again.cancel().await.expect("cancelled");
}

#[test]
fn a_form_decides() {
    let place = Place::new();
    let kernel = asking(&place);
    run(async {
        let talk = Talk::open(&place, Some(&kernel), discover()).await;
        let source = "sh { echo approved-$((40 + 2)) }";
        let made = talk.tool("shoal_plan", json!({ "src": source })).await.expect("a plan");
        let plan = made.structured_content.expect("both halves")["plan_ref"].clone();
        let applied = talk.tool("shoal_apply", json!({ "plan_ref": plan })).await.expect("a result");
        assert!(
            matches!(applied.content.first(), Some(ContentBlock::Text(text)) if text.text.contains("approved-42")),
            "{applied:?}"
        );
        let shown = talk.person.shown.lock().expect("nobody panicked").clone();
        assert!(shown.len() == 1 && shown[0].contains(source), "{shown:?}");
        talk.close().await;
    });
}
