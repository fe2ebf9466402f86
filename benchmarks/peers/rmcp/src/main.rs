//! Peer: the official Rust SDK, over `stdio()` as its README shows, with `--pipes` over `stdio_pipes()`, or with
//! `--http PORT` over HTTP, stateless and with JSON answers.
//! `--shape SHAPE` before these serves echo in one of the shapes of W12 instead of the tools below.
//!
//! The router is made once and kept: the shortest form of the macros makes it anew for every call.

mod shapes;

use std::error::Error;
use std::process::Stdio;
use std::time::Duration;

use axum::serve::ListenerExt;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolResult;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::transport::{stdio, stdio_pipes};
use rmcp::{ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use serde::Deserialize;
use serde_json::{Map, Value};
use shapes::Shaped;

#[derive(Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Payload {
    object: Map<String, Value>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Sleep {
    ms: u64,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Bash {
    command: String,
}

#[derive(Clone)]
struct Bench {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Bench {
    #[tool(description = "Return the text.")]
    fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }

    #[tool(description = "Return the sum of two integers.")]
    fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> String {
        a.wrapping_add(b).to_string()
    }

    #[tool(description = "Return the object.")]
    fn payload(&self, Parameters(Payload { object }): Parameters<Payload>) -> CallToolResult {
        CallToolResult::structured(Value::Object(object))
    }

    #[tool(description = "Wait for so many milliseconds.")]
    async fn sleep(&self, Parameters(Sleep { ms }): Parameters<Sleep>) -> String {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        "done".into()
    }

    #[tool(description = "Run a command and return what it printed.")]
    async fn bash(&self, Parameters(Bash { command }): Parameters<Bash>) -> Result<String, String> {
        let mut shell = tokio::process::Command::new("bash");
        shell.arg("-c").arg(command).stdin(Stdio::null());
        let output = shell
            .output()
            .await
            .map_err(|problem| problem.to_string())?;
        let printed = [output.stdout, output.stderr].concat();
        Ok(String::from_utf8_lossy(&printed).into_owned())
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Bench {}

async fn serve_http<S>(server: S, port: u16) -> Result<(), Box<dyn Error>>
where
    S: ServerHandler + Clone,
{
    let mut config = StreamableHttpServerConfig::default();
    config.legacy_session_mode = false;
    config.json_response = true;
    let sessions = std::sync::Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    let router = axum::Router::new().nest_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    axum::serve(listener.tap_io(|stream| { let _ = stream.set_nodelay(true); }), router).await?;
    Ok(())
}

async fn serve<S>(server: S, options: &[String]) -> Result<(), Box<dyn Error>>
where
    S: ServerHandler + Clone,
{
    match options.first().map(String::as_str) {
        Some("--http") => serve_http(server, options[1].parse()?).await?,
        Some("--pipes") => {
            server.serve(stdio_pipes()).await?.waiting().await?;
        }
        _ => {
            server.serve(stdio()).await?.waiting().await?;
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [option, shape, options @ ..] = arguments.as_slice()
        && option == "--shape"
    {
        return serve(Shaped::new(shape), options).await;
    }
    let bench = Bench {
        tool_router: Bench::tool_router(),
    };
    serve(bench, &arguments).await
}
